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

// A later version may add fields behind the flags, never the first one; version ff is forbidden.
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/
const FIRST_VERSION_LENGTH = 55
const FORBIDDEN_VERSION = 'ff'
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const MAX_TRACEPARENT_LENGTH = 256
const SAMPLED = 1
// The recommendation asks to pass on at least 512 characters.
const MAX_STATE_LENGTH = 512
const STATE = /^[\x20-\x7e\t]*$/

type HeaderValue = string | readonly string[] | undefined

export function readTraceContext(traceparent: HeaderValue, tracestate?: HeaderValue): TraceContext | null {
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT_LENGTH) return null
  if (!TRACEPARENT.test(traceparent) || traceparent.startsWith(FORBIDDEN_VERSION)) return null
  if (traceparent.startsWith('00') && traceparent.length !== FIRST_VERSION_LENGTH) return null
  const traceId = traceparent.slice(3, 35)
  const spanId = traceparent.slice(36, 52)
  if (traceId === NO_TRACE || spanId === NO_SPAN) return null
  const isSampled = (Number.parseInt(traceparent.slice(53, 55), 16) & SAMPLED) !== 0
  return { traceId, spanId, isSampled, state: readState(tracestate) }
}

function readState(header: HeaderValue): string {
  if (header === undefined) return ''
  const text = typeof header === 'string' ? header : header.join(',')
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

/** As one text, for a place to keep it: the two headers with a blank between them. */
export function writeTraceContext(context: TraceContext): string {
  return `${toTraceparent(context)} ${context.state}`.trimEnd()
}

/** null: there is none, or what is there is none. */
export function readKeptTrace(text: string | null): TraceContext | null {
  if (text === null) return null
  const [traceparent = ''] = text.split(' ', 1)
  return readTraceContext(traceparent, text.slice(traceparent.length + 1))
}
