/** The model a rehearsal plays. */
export const REHEARSAL_MODEL = 'drover-rehearsal';

/** Limits in tokens. */
export interface RehearsalModel {
  id: string;
  name: string;
  maxInput: number;
  maxOutput: number;
}

export const rehearsalModel = (id: string): RehearsalModel => ({
  id,
  name: id === REHEARSAL_MODEL ? 'Rehearsal (simulated, nothing is billed)' : id,
  maxInput: 200_000,
  maxOutput: 64_000,
});

const supported = { supported: true };
const unsupported = { supported: false };

/** A model as `GET /v1/models` describes it. */
export const describeModel = (model: RehearsalModel) => ({
  type: 'model',
  id: model.id,
  display_name: model.name,
  created_at: '2026-11-30T00:00:00Z',
  lifecycle: 'active',
  deprecated_at: null,
  retires_at: null,
  line: null,
  max_input_tokens: model.maxInput,
  max_tokens: model.maxOutput,
  capabilities: {
    batch: unsupported,
    citations: unsupported,
    code_execution: unsupported,
    context_management: null,
    effort: { supported: true, low: supported, medium: supported, high: supported, xhigh: supported, max: supported },
    image_input: unsupported,
    pdf_input: unsupported,
    server_tools: { supported: false, code_execution: unsupported, web_search: unsupported },
    structured_outputs: unsupported,
    thinking: {
      supported: true,
      types: { adaptive: supported, between_tools: unsupported, disabled: supported, enabled: unsupported },
    },
  },
});
