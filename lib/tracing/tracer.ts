/**
 * The interface of a tracer, which records where the time of a request went. While tracing is off there is no tracer: callers then hold
 * `undefined`, check that once, and pay nothing.
 */
import type { Log } from '../log.ts'
import type { TraceContext } from './trace-context.ts'

export type Attributes = Readonly<Record<string, string | number | boolean>>

/** Who waits for whom: a `server` for its caller, a `client` for a server, and nobody for what is `internal`. */
export type SpanKind = 'internal' | 'server' | 'client'

export interface SpanOptions {
  readonly kind?: SpanKind
  /** Left out: the span that is active now. null: none, so that a trace begins here. */
  readonly parent?: TraceContext | null
  /** Milliseconds since 1970; left out: now. */
  readonly startMs?: number
  readonly attributes?: Attributes
}

/** A piece of work with a name, a beginning and an end. It is reported when it ends; calls after its end are ignored. */
export interface Span {
  readonly context: TraceContext
  rename(name: string): void
  set(attributes: Attributes): void
  /** Marks the work as failed. The reason is a word or a code, never text that a caller wrote. */
  fail(reason: string): void
  end(atMs?: number): void
}

export interface Tracer {
  /** The span inside which the present code runs. */
  active(): Span | undefined
  start(name: string, options?: SpanOptions): Span
  /** Runs `body`, with everything that it starts and awaits, inside the span. Does not end the span. */
  within<Result>(span: Span, body: () => Result): Result
}

/** Runs the body inside a span of its own, which ends with it. */
export function inSpan<Result>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  body: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = tracer.start(name, options)
  return endWith(
    span,
    tracer.within(span, () => body(span)),
  )
}

/** Not an async function: these stand around every submit, and each promise in between would cost more than the span. */
function endWith<Result>(span: Span, work: Promise<Result>): Promise<Result> {
  return work.then(
    (result) => {
      span.end()
      return result
    },
    (error: unknown) => {
      span.fail(reasonOf(error))
      span.end()
      throw error
    },
  )
}

/** The function itself while tracing is off; otherwise one that makes a span of each call. */
export function traced<Inputs extends unknown[], Result>(
  tracer: Tracer | undefined,
  name: string,
  call: (...inputs: Inputs) => Promise<Result>,
): (...inputs: Inputs) => Promise<Result> {
  if (tracer === undefined) return call
  return (...inputs) => inSpan(tracer, name, {}, () => call(...inputs))
}

/** As `traced`, for a step that begins no further spans: the span is never the active one, which costs less. */
export function timed<Inputs extends unknown[], Result>(
  tracer: Tracer | undefined,
  name: string,
  call: (...inputs: Inputs) => Promise<Result>,
): (...inputs: Inputs) => Promise<Result> {
  if (tracer === undefined) return call
  return (...inputs) => {
    const span = tracer.start(name)
    return endWith(span, call(...inputs))
  }
}

/** A closed word for why something failed: refusals have one, everything else goes by the class of its error. */
export function reasonOf(error: unknown): string {
  const { refusal, name } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  if (typeof refusal === 'string') return refusal
  return typeof name === 'string' ? name : 'Error'
}

/** A log whose lines say which trace they belong to, where they belong to one. */
export function withTraceIds(log: Log, tracer: Tracer): Log {
  const mark = (fields: object): object => {
    const context = tracer.active()?.context
    return context === undefined ? fields : { ...fields, trace_id: context.traceId, span_id: context.spanId }
  }
  return {
    debug: (fields, message) => log.debug(mark(fields), message),
    info: (fields, message) => log.info(mark(fields), message),
    warn: (fields, message) => log.warn(mark(fields), message),
    error: (fields, message) => log.error(mark(fields), message),
    child: (fields) => withTraceIds(log.child(fields), tracer),
  }
}
