import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { RELAY_PROGRAMS, RELAY_SOURCE } from '../../../src/sandbox/docker/relay-programs.ts';
import { RelayWire } from '../../../src/sandbox/docker/relay-wire.ts';

const KIND = { ready: 0, open: 1, data: 2, end: 3, reset: 4, credit: 5 };

function frame(id: number, kind: number, body: string | Buffer = ''): Buffer {
  const bytes = Buffer.from(body);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(id, 0);
  head.writeUIntLE(bytes.length, 4, 3);
  head[7] = kind;
  return Buffer.concat([head, bytes]);
}

function open() {
  const sent: Buffer[] = [];
  const connections: Duplex[] = [];
  const broken: string[] = [];
  const ways: string[] = [];
  const wire = new RelayWire({
    send: (bytes) => void sent.push(bytes),
    onReady: (way) => void ways.push(way),
    onConnection: (connection) => {
      connection.on('error', () => {});
      connections.push(connection);
    },
    onBroken: (why) => void broken.push(why),
  });
  return { wire, sent, connections, broken, ways };
}

describe('the relay', () => {
  it('that ships is built from the source that is here', () => {
    const source = readFileSync(join(import.meta.dirname, '../../../relay/relay.c'));
    expect(RELAY_SOURCE).toBe(createHash('sha256').update(source).digest('hex'));
    for (const program of Object.values(RELAY_PROGRAMS)) {
      const bytes = Buffer.from(program, 'base64');
      expect(bytes.subarray(0, 4).toString('latin1')).toBe('\x7fELF');
      expect(bytes.length).toBeLessThan(8192);
    }
  });

  it('is understood however its frames are cut', async () => {
    const { wire, connections, ways } = open();
    const all = Buffer.concat([
      frame(1, KIND.ready),
      frame(7, KIND.open),
      frame(7, KIND.data, 'hello '),
      frame(7, KIND.data, 'world'),
      frame(7, KIND.end),
    ]);
    for (const byte of all) wire.receive(Buffer.from([byte]));
    let text = '';
    for await (const chunk of connections[0] ?? []) text += chunk;
    expect(text).toBe('hello world');
    expect(ways).toEqual(['frames']);
  });

  it('is sent no more than it has room for', () => {
    const { wire, sent, connections } = open();
    wire.receive(frame(1, KIND.open));
    connections[0]?.write(Buffer.alloc(3_000_000));
    const bytes = () => sent.reduce((sum, one) => sum + (one[7] === KIND.data ? one.length - 8 : 0), 0);
    expect(bytes()).toBe(1024 * 1024);
    const credit = Buffer.alloc(4);
    credit.writeUInt32LE(500_000);
    wire.receive(frame(1, KIND.credit, credit));
    expect(bytes()).toBe(1024 * 1024 + 500_000);
  });

  it.each([
    ['a frame that is too long', Buffer.from([1, 0, 0, 0, 255, 255, 255, 2])],
    ['a kind that does not exist', frame(1, 9)],
    ['a connection that exists', frame(1, KIND.open)],
    [
      'more than it was given credit for',
      Buffer.concat(Array.from({ length: 40 }, () => frame(1, KIND.data, Buffer.alloc(65_536)))),
    ],
  ])('that sends %s is not listened to any more, and its connections end', (_what, bytes) => {
    const { wire, connections, broken } = open();
    wire.receive(frame(1, KIND.open));
    wire.receive(bytes);
    wire.receive(frame(2, KIND.open));
    expect(broken).toHaveLength(1);
    expect(connections).toHaveLength(1);
    expect(connections[0]?.destroyed).toBe(true);
  });
});
