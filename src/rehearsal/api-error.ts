/** The API's type of error for an HTTP status. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'messages: this request was refused on purpose',
  401: 'invalid x-api-key',
  402: 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  403: 'Your API key does not have permission to use the specified resource.',
  404: 'Not found',
  413: 'Request exceeds the maximum size',
  429: "This request would exceed your organization's rate limit",
  529: 'Overloaded',
};

export const errorTypeOf = (status: number): string => TYPES[status] ?? 'api_error';
export const errorMessageOf = (status: number): string => MESSAGES[status] ?? 'Internal server error';

/** An answer with an HTTP error, in the API's shape. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, more: { type?: string; headers?: Record<string, string> } = {}) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.type = more.type ?? errorTypeOf(status);
    this.headers = more.headers ?? {};
  }

  body(requestId: string) {
    return { type: 'error', error: { type: this.type, message: this.message }, request_id: requestId };
  }
}
