/**
 * The interface of a tracer, for whoever wants to know where the time of a request went. There is none where nobody listens: callers
 * hold `undefined` in its place, ask once, and pay nothing.
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

/** A piece of work with a name, a beginning and an end. It is told of when it ends; what comes after its end is ignored. */
export interface Span {
  readonly context: TraceContext
  rename(name: string): void
  set(attributes: Attributes): void
  /** It did not do what it was for. The reason is a word or a code, and nothing that a caller wrote. */
  fail(reason: string): void
  end(atMs?: number): void
}

export interface Tracer {
  /** The span inside which the present code runs. */
  active(): Span | undefined
  start(name: string, options?: SpanOptions): Span
  /** Whatever `body` does and starts, and all that waits for it there, runs inside the span. It is not ended. */
  within<Result>(span: Span, body: () => Result): Result
}

/** Runs the body inside a span of its own, which ends with it. */
export async function inSpan<Result>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  body: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = tracer.start(name, options)
  try {
    return await tracer.within(span, () => body(span))
  } catch (error) {
    span.fail(reasonOf(error))
    throw error
  } finally {
    span.end()
  }
}

/** The same function where nobody traces; else one whose calls are spans. */
export function traced<Inputs extends unknown[], Result>(
  tracer: Tracer | undefined,
  name: string,
  call: (...inputs: Inputs) => Promise<Result>,
): (...inputs: Inputs) => Promise<Result> {
  if (tracer === undefined) return call
  return (...inputs) => inSpan(tracer, name, {}, () => call(...inputs))
}

/** As `traced`, for a step that begins no span of its own: it costs less, because it is not made the active one. */
export function timed<Inputs extends unknown[], Result>(
  tracer: Tracer | undefined,
  name: string,
  call: (...inputs: Inputs) => Promise<Result>,
): (...inputs: Inputs) => Promise<Result> {
  if (tracer === undefined) return call
  return (...inputs) => {
    const span = tracer.start(name)
    return call(...inputs).then(
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
