import { readdir, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import type { LiveSession } from '../../src/editor/live-session.ts';
import { RecordStream } from '../../src/editor/record-stream.ts';
import type { CredentialId } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { CheckpointStore } from '../../src/sandbox/checkpoints/checkpoints.ts';
import type { Checkpoints } from '../../src/sandbox/sandbox.ts';
import type { Question } from '../../src/session/state.ts';
import type { Bound } from '../../src/vault/egress.ts';
import { createGuard } from '../../src/vault/outgoing.ts';
import { placeholderFor } from '../../src/vault/placeholder.ts';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { Redactor } from '../../src/vault/redactor.ts';
import { formsOf } from '../../src/vault/secret-forms.ts';
import { type Rig as Machine, makeRig, SAMPLE } from '../sandbox/rig.ts';
import { describeWith, engineAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { Rig } from '../unit/harness/rig.ts';

const engine = await engineAvailable();
const PUBLIC = '127.7.7.7';
const SECRET = 'the-real-value-0123456789';

/** It knows no value: nothing has to be taken out where nothing comes in. */
const guard = createGuard({
  redactor: new Redactor(),
  maskKey: new Uint8Array(32),
  workFolder: ({ workspaceFolder }) => workspaceFolder,
});

let machine: Machine | undefined;
let server: Server | undefined;

afterEach(async () => {
  server?.close();
  server?.closeAllConnections();
  await machine?.clear();
  machine = undefined;
});

/** A whole session on a container, with a credential for `api.test` alone. */
async function open(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const listening = createServer(answer);
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, PUBLIC, resolve));
  const { port } = listening.address() as AddressInfo;
  const { rig } = await openFor({ host: 'api.test' }, undefined, []);
  return { rig, url: `http://web.test:${port}` };
}

/** With a real keeper of checkpoints. `certificate`: whom the proxy trusts beside the public ones. */
async function openFor(bound: Bound, certificate: string | undefined, allowed_hosts: string[]) {
  const made = await makeRig({
    egress: createEgress({
      resolve: async () => [PUBLIC],
      privateRanges: [`${PUBLIC}/32`],
      extraCertificates: () => (certificate ? [certificate] : []),
      secrets: async (session) => {
        const placeholder = placeholderFor(session, 'cred_api' as CredentialId);
        const one = { credentialId: 'cred_api', placeholder, bound: [bound], inHeader: true, inBody: false };
        return {
          injectables: async () => [{ ...one, value: async () => SECRET }],
          env: { API_TOKEN: placeholder },
        };
      },
    }),
  });
  machine = made;
  let store: CheckpointStore | undefined;
  const checkpoints: Checkpoints = {
    follow: (owner) => {
      const privateFolder = join(made.cache, 'checkpoints');
      store ??= new CheckpointStore({ root: join(owner.workspaceFolder, '.drover'), privateFolder });
      return store.follow(owner);
    },
  };
  const rig = await Rig.open({
    deps: { sandboxes: made.provider, alwaysRefold: false, guard, checkpoints },
    config: { type: 'image', image: SAMPLE, networking: { type: 'limited', allowed_hosts } },
    agent: {
      tools: [{ type: 'agent_toolset_20260401', default_config: { permission_policy: { type: 'always_allow' } } }],
    },
  });
  return { made, rig, placeholder: placeholderFor(rig.session, 'cred_api' as CredentialId) };
}

const filesIn = async (folder: string): Promise<string[]> => {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const plain = files.filter((file) => file.isFile());
  return await Promise.all(plain.map((file) => readFile(join(file.parentPath, file.name), 'latin1')));
};

const task = (script: string): string =>
  `[rehearsal:call tool=bash] ${JSON.stringify({ command: `node -e '${script}'` })}`;

/** The session's first question, once it is asked; and how a person says yes to it for the session. */
async function firstQuestion(rig: Rig): Promise<Question> {
  return await eventually('a question', 30_000, async () => (await rig.state()).questions.at(0));
}

const allow = (rig: Rig, { id }: Question): Promise<void> =>
  rig.append(
    draft(
      'user.tool_confirmation',
      { tool_use_id: id, result: 'allow' },
      { thread: rig.primary, local: { scope: 'session' } },
    ),
  );

const fetching = (url: string, init = '{}'): string =>
  `fetch("${url}",${init}).then(async r=>console.log(r.status,await r.text())).catch(e=>console.log("failed",e.cause?.message??e.message))`;

describeWith(engine, 'a session whose sandbox wants out', () => {
  it('asks for the host, waits for the answer, and goes on with it; the answer for the session is not asked for again', async () => {
    const { rig, url } = await open((request, response) => void response.end(`hello ${request.url}`));
    await rig.create(task(fetching(`${url}/a`)));
    const running = rig.harness.wake(rig.session, 'a test');
    const question = await firstQuestion(rig);
    expect(question).toMatchObject({ kind: 'host', host: { name: 'web.test' }, answer: null });
    expect(question.why).toMatch(/wants to reach web\.test:\d+, which this environment's network settings do not name/);
    expect(question.call).not.toBeNull();
    await allow(rig, question);
    await running;
    const text = JSON.stringify(await rig.records());
    expect(text).toContain('200 hello /a');
    expect(text).toMatch(/"type":"drover\.egress"[^}]*"host":"web\.test"[^}]*"verdict":"allowed"/);
    await rig.say(task(fetching(`${url}/b`)));
    expect(JSON.stringify(await rig.records())).toContain('200 hello /b');
    expect((await rig.state()).questions).toHaveLength(1);
  }, 60_000);

  it('stops when a placeholder is on its way to where it does not belong; no record, blob or request has the value', async () => {
    const { rig, url } = await open((request, response) => void response.end(`got ${request.headers['x-token']}`));
    const headers = '{headers:{"x-token":process.env.API_TOKEN}}';
    await rig.create(task(fetching(url, headers)));
    const running = rig.harness.wake(rig.session, 'a test');
    await allow(rig, await firstQuestion(rig));
    await running;
    const state = await rig.state();
    expect(state.questions.map(({ kind, answer }) => [kind, answer?.result ?? null])).toEqual([
      ['host', 'allow'],
      ['canary', null],
    ]);
    expect(state.stopReason).toMatchObject({ type: 'requires_action' });
    const texts = await filesIn(join(rig.folder, '.drover'));
    for (const text of [...texts, JSON.stringify(rig.rehearsal.requests)]) expect(text).not.toContain(SECRET);
  }, 60_000);

  it('keeps a value that is put in and echoed from the model, the log, its blobs and a page; a placeholder in a file stops it', async () => {
    const internet = new SessionAuthority();
    const heard: string[] = [];
    const secured = createSecure(
      { SNICallback: (name, done) => done(null, internet.contextFor(name)) },
      (request, response) => {
        heard.push(String(request.headers.authorization));
        const coded = Buffer.from(SECRET).toString('base64');
        response.setHeader('x-echo', String(request.headers.authorization));
        response.end(`you are ${request.headers.authorization}, ${coded}, ${encodeURIComponent(SECRET)}`);
      },
    );
    server = secured;
    await new Promise<void>((resolve) => secured.listen(0, PUBLIC, resolve));
    const { port } = secured.address() as AddressInfo;
    const { made, rig, placeholder } = await openFor({ host: 'api.test', port }, internet.certificate, [
      `api.test:${port}`,
    ]);
    const script = `fetch("https://api.test:${port}/",{headers:{authorization:process.env.API_TOKEN}}).then(async r=>{console.log(r.status,await r.text(),r.headers.get("x-echo"));require("fs").writeFileSync("leak.txt",process.env.API_TOKEN)}).catch(e=>console.log("failed",e.cause?.message??e.message))`;
    await rig.create(task(script));
    await rig.harness.wake(rig.session, 'a test');
    const state = await rig.until('the card', ({ questions }) => questions.length > 0);
    expect(state.questions).toMatchObject([
      {
        kind: 'canary',
        why: expect.stringContaining('in leak.txt now'),
        call: [...state.calls.keys()][0],
        answer: null,
      },
    ]);
    expect(heard).toEqual([SECRET]);
    const messages: unknown[] = [];
    const page = { project: { store: rig.store }, id: rig.session } as unknown as LiveSession;
    const stream = new RecordStream(
      page,
      async (message) => messages.push(message) > 0,
      () => undefined,
    );
    await stream.start();
    stream.dispose();
    const places = {
      page: JSON.stringify(messages),
      model: JSON.stringify(rig.rehearsal.requests),
      files: (await filesIn(join(rig.folder, '.drover'))).join('\n'),
      cache: (await filesIn(made.cache)).join('\n'),
    };
    for (const place of [places.page, places.model, places.files]) expect(place).toContain(placeholder);
    for (const { text } of formsOf(SECRET)) {
      for (const [name, place] of Object.entries(places))
        expect(place.includes(text), `${text} in the ${name}`).toBe(false);
    }
  }, 90_000);
});
