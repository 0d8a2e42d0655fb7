/**
 * The W3C trace context (https://www.w3.org/TR/trace-context/): which trace and which span of it a piece of work belongs to, as two
 * headers carry it. Whatever does not follow the recommendation counts as absent: a trace that is not continued does no harm.
 */
export interface TraceContext {
  /** 32 hex digits, not all zero. */
  readonly traceId: string
  /** 16 hex digits, not all zero: the parent of whatever is begun under this context. */
  readonly spanId: string
  readonly isSampled: boolean
  /** What other systems keep with the trace, passed on as it came; '' for nothing. */
  readonly state: string
}

// A later version may add fields behind the flags; version ff is forbidden.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/
const FIRST_VERSION = /^00-.{52}$/
const MAX_TRACEPARENT_LENGTH = 256
const SAMPLED = 1
// The recommendation asks to pass on at least 512 characters.
const MAX_STATE_LENGTH = 512
const STATE = /^[\x20-\x7e\t]*$/

type HeaderValue = string | readonly string[] | undefined

export function readTraceContext(traceparent: HeaderValue, tracestate?: HeaderValue): TraceContext | null {
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT_LENGTH) return null
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  if (traceparent.startsWith('00') && !FIRST_VERSION.test(traceparent)) return null
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  return { traceId, spanId, isSampled, state: readState(tracestate) }
}

function readState(header: HeaderValue): string {
  const text = typeof header === 'string' ? header : (header?.join(',') ?? '')
  return text.length <= MAX_STATE_LENGTH && STATE.test(text) ? text : ''
}

export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** The headers of a request that is made under this context. */
export function toTraceHeaders(context: TraceContext): Record<string, string> {
  const traceparent = toTraceparent(context)
  return context.state === '' ? { traceparent } : { traceparent, tracestate: context.state }
}
