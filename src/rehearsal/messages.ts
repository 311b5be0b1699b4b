import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, errorMessageOf } from './api-error.ts';
import { type Conversation, readConversation } from './conversation.ts';
import { type Fault, type Faults, spoil } from './faults.ts';
import { type Message, wholeMessage } from './frames.ts';
import type { RehearsalModel } from './models.ts';
import { blocksOf, idOf, isOurThinking } from './reply.ts';
import { play } from './scenarios/registry.ts';
import { type Delays, sendJson, sendStream } from './send.ts';
import { promptTokens, usageOf } from './tokens.ts';
import { validateCount, validateRequest } from './validate-request.ts';

type Json = Record<string, unknown>;

interface MessagesOptions {
  faults: Faults;
  /** Throws `ApiError` 404. */
  model: (id: string) => RehearsalModel;
  delays: Delays;
  scenario: string | undefined;
}

const CHECKS = { verifyThinking: isOurThinking };
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function objectOf(body: unknown): Json {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ApiError(400, 'Input should be an object');
  return body as Json;
}

/** `POST /v1/messages` and what belongs to it. */
export class Messages {
  readonly #options: MessagesOptions;

  constructor(options: MessagesOptions) {
    this.#options = options;
  }

  async reply(input: unknown, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = objectOf(input);
    const fault = this.#options.faults.choose(listOf(body.messages));
    if (fault?.kind === 'reset') return void request.socket.resetAndDestroy();
    if (fault?.kind === 'status') throw statusError(fault);
    const message = this.#compose(body, this.#check(body), fault);
    if (body.stream === true) await sendStream(response, message, this.#options.delays, fault);
    else sendJson(response, 200, wholeMessage(message));
  }

  count(input: unknown): { input_tokens: number } {
    const body = objectOf(input);
    this.#modelOf(body);
    const problem = validateCount(body, CHECKS);
    if (problem) throw new ApiError(400, problem);
    return { input_tokens: promptTokens(body) };
  }

  #modelOf(body: Json): RehearsalModel {
    if (typeof body.model !== 'string') throw new ApiError(400, 'model: Field required');
    return this.#options.model(body.model);
  }

  #check(body: Json): RehearsalModel {
    const model = this.#modelOf(body);
    const problem = validateRequest(body, model, CHECKS);
    if (problem) throw new ApiError(400, problem);
    const tokens = promptTokens(body);
    if (tokens > model.maxInput) {
      throw new ApiError(400, `prompt is too long: ${tokens} tokens > ${model.maxInput} maximum`);
    }
    return model;
  }

  #compose(body: Json, model: RehearsalModel, fault: Fault | undefined): Message {
    const conversation = this.#directed(readConversation(listOf(body.messages), listOf(body.tools)));
    const reply = spoil(play(conversation), fault);
    const seed = JSON.stringify([body.system, body.messages]);
    const blocks = blocksOf(reply, seed);
    return { id: idOf('msg', seed), model: model.id, reply, blocks, usage: usageOf(body, blocks) };
  }

  /** The server's own choice of a piece stands where the conversation makes none. */
  #directed(conversation: Conversation): Conversation {
    const name = this.#options.scenario;
    if (!name || conversation.marker) return conversation;
    return { ...conversation, marker: { kind: 'rehearsal', name, args: {} } };
  }
}

function statusError(fault: Extract<Fault, { kind: 'status' }>): ApiError {
  const headers: Record<string, string> = {};
  const ms = fault.retryAfterMs;
  if (ms !== undefined)
    headers[ms % 1000 === 0 ? 'retry-after' : 'retry-after-ms'] = String(ms % 1000 === 0 ? ms / 1000 : ms);
  return new ApiError(fault.status, fault.message ?? errorMessageOf(fault.status), {
    headers,
    ...(fault.type ? { type: fault.type } : {}),
  });
}
