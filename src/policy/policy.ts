import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { Evaluation, Permission } from '../protocol/event.ts';
import type { StandingRule } from '../protocol/record.ts';

/** The interface of `policy/`: may this call run, and why. */
export interface Policy {
  evaluate(question: Question): Verdict;
}

export interface Question {
  agent: AgentSnapshot;
  tool: string;
  input: Readonly<Record<string, unknown>>;
  /** SHA-256, hex, of the input as canonical JSON. */
  inputSha256: string;
  /** What a person has allowed from now on in this session. */
  standing: readonly StandingRule[];
  /** Threads of the session that have not ended, the asking one included. */
  livingThreads: number;
}

export interface Verdict {
  permission: Permission;
  evaluation: Evaluation;
  /** One sentence for people. */
  why: string;
  rule?: StandingRule;
}
