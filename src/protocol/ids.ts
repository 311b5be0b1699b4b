import { z } from 'zod';

/*
 * Every id carries the prefix of the public API, so that a person who reads a log
 * knows what an id names, and a brand, so that the compiler does too.
 */
export const SessionId = z.string().min(1).brand<'SessionId'>();
export type SessionId = z.infer<typeof SessionId>;
export const ThreadId = z.string().min(1).brand<'ThreadId'>();
export type ThreadId = z.infer<typeof ThreadId>;
export const EventId = z.string().min(1).brand<'EventId'>();
export type EventId = z.infer<typeof EventId>;
export const AgentId = z.string().min(1).brand<'AgentId'>();
export type AgentId = z.infer<typeof AgentId>;
export const EnvironmentId = z.string().min(1).brand<'EnvironmentId'>();
export type EnvironmentId = z.infer<typeof EnvironmentId>;
export const VaultId = z.string().min(1).brand<'VaultId'>();
export type VaultId = z.infer<typeof VaultId>;
export const CredentialId = z.string().min(1).brand<'CredentialId'>();
export type CredentialId = z.infer<typeof CredentialId>;
/** One attempt at one tool call. The sandbox keeps what became of it under this id. */
export const ExecutionId = z.string().min(1).brand<'ExecutionId'>();
export type ExecutionId = z.infer<typeof ExecutionId>;
export const SandboxId = z.string().min(1).brand<'SandboxId'>();
export type SandboxId = z.infer<typeof SandboxId>;

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

const LENGTH = 20;
/** Asking for random bytes costs more than all the rest of an id, so they are asked for many ids at once. */
const pool = new Uint8Array(LENGTH * 100);
let used = pool.length;

/** 20 characters of base 58: about 117 random bits, so ids never need a registry. */
function random(): string {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  let text = '';
  for (const byte of pool.subarray(used, used + LENGTH)) text += ALPHABET[byte % ALPHABET.length];
  used += LENGTH;
  return text;
}

export const mint = {
  session: (): SessionId => SessionId.parse(`sesn_${random()}`),
  thread: (): ThreadId => ThreadId.parse(`sthr_${random()}`),
  event: (): EventId => EventId.parse(`sevt_${random()}`),
  agent: (): AgentId => AgentId.parse(`agent_${random()}`),
  environment: (): EnvironmentId => EnvironmentId.parse(`env_${random()}`),
  execution: (): ExecutionId => ExecutionId.parse(`exec_${random()}`),
  vault: (): VaultId => VaultId.parse(`vlt_${random()}`),
  credential: (): CredentialId => CredentialId.parse(`vcrd_${random()}`),
  rule: (): string => `rule_${random()}`,
  sandbox: (): SandboxId => SandboxId.parse(`sbx_${random()}`),
};
