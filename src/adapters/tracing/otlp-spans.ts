/**
 * Spans to a collector, by OpenTelemetry's own SDK as OTLP/HTTP in Protocol Buffers. What waits for the collector is bounded, and so is
 * the wait at the end; whatever is lost is counted and told, once for each time that the collector is away.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, ROOT_CONTEXT } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import { createSdkTracer } from './sdk-tracer.ts'

interface OtlpOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  readonly sampler: SamplerName
  readonly ratio: number
  readonly log: Log
}

/** By the names that OpenTelemetry has for the rules (OTEL_TRACES_SAMPLER). */
export type SamplerName = 'always_on' | 'always_off' | 'traceidratio' | ParentBased
type ParentBased = 'parentbased_always_on' | 'parentbased_always_off' | 'parentbased_traceidratio'

const MAX_WAITING = 8192
// Some hundred kilobytes: a request costs as much as many spans.
const MAX_BATCH = 1024
const GATHER_MS = 1000
// How long the end of the process may wait for what is left.
const CLOSE_WITHIN_MS = 3000
// A trace is read by a person, so everything in it is short.
const LIMITS = { attributeCountLimit: 32, attributeValueLengthLimit: 256 }

/** Closing it sends what has not been sent, within a bounded time. */
export function openOtlpTracer(options: OtlpOptions): AsyncDisposable & { readonly tracer: Tracer } {
  const { url, timeoutMs, resource, version, log } = options
  const exporter = new OTLPTraceExporter({ url, headers: { ...options.headers }, timeoutMillis: timeoutMs })
  const account = createAccount(exporter, log)
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(resource)),
    sampler: createSampler(options.sampler, options.ratio),
    spanLimits: LIMITS,
    spanProcessors: [account.processor],
  })
  const storage = new AsyncLocalStorage<Context>()
  const tracer = createSdkTracer(provider.getTracer('atelier', version), {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (context, body) => storage.run(context, body),
  })
  let closed: Promise<void> | null = null
  return {
    tracer,
    [Symbol.asyncDispose]() {
      closed ??= settlesWithin(provider.shutdown(), CLOSE_WITHIN_MS).then(account.tellLost)
      return closed
    },
  }
}

export function createSampler(name: SamplerName, ratio: number): Sampler {
  const byName: Record<SamplerName, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
    parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
    parentbased_traceidratio: () => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
  }
  return byName[name]()
}

/** The SDK's batches, with a count of what becomes of each span: the SDK itself drops them in silence. */
function createAccount(inner: SpanExporter, log: Log): { readonly processor: SpanProcessor; tellLost(): void } {
  let ended = 0
  let handedOver = 0
  let taken = 0
  let overflowed = 0
  let isAway = false
  const exporter: SpanExporter = {
    export(spans, onResult) {
      handedOver += spans.length
      inner.export(spans, (result) => {
        if (result.error === undefined) taken += spans.length
        if (result.error !== undefined && !isAway) {
          const reason = result.error.message
          log.warn({ reason }, 'the collector does not take traces; they are dropped until it does')
        } else if (result.error === undefined && isAway) {
          log.info({ dropped: handedOver - taken + overflowed }, 'the collector takes traces again')
        }
        isAway = result.error !== undefined
        onResult(result)
      })
    },
    shutdown: () => inner.shutdown(),
  }
  const batches = new BatchSpanProcessor({
    exporter,
    maxQueueSize: MAX_WAITING,
    maxExportBatchSize: MAX_BATCH,
    scheduledDelayMillis: GATHER_MS,
  })
  const processor: SpanProcessor = {
    onStart: (span, parent) => batches.onStart(span, parent),
    onEnd(span) {
      ended++
      if (ended - overflowed - handedOver > MAX_WAITING) overflowed++
      else batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
  return {
    processor,
    tellLost() {
      if (ended > taken) log.warn({ dropped: ended - taken }, 'spans were dropped')
    },
  }
}
