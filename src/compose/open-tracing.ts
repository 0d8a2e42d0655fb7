/** Where spans go: to an SDK that the operator has loaded, otherwise to the configured collector, otherwise nowhere. */
import { hostname } from 'node:os'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { type Tracer, withTraceIds } from '../../lib/tracing/tracer.ts'
import type { TracesConfig } from '../config/blocks/traces-config.ts'
import type { Secret } from '../config/secrets.ts'

interface TracingParts {
  /** As JSON; null: none. */
  readonly headers: Secret<string> | null
  readonly version: string
  readonly log: Log
}

/** Closing it sends what has not been sent, within a bounded time. */
interface OpenedTracing extends AsyncDisposable {
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  /** Its lines name the trace that they belong to. */
  readonly log: Log
}

// Where every version of OpenTelemetry's API keeps what an SDK has registered.
const SDK_MARK = Symbol.for('opentelemetry.js.api.1')
const OFF: AsyncDisposable = { async [Symbol.asyncDispose]() {} }

export async function openTracing(config: TracesConfig | null, parts: TracingParts): Promise<OpenedTracing> {
  const { log } = parts
  const registered = await findSdk()
  if (registered !== null) return { ...OFF, tracer: registered, log: withTraceIds(log, registered) }
  return config === null ? { ...OFF, log } : openOtlp(config, parts)
}

/** The library is loaded only where an SDK has left its mark: it takes a start some 15 ms. */
async function findSdk(): Promise<Tracer | null> {
  if (!(SDK_MARK in globalThis)) return null
  const { findRegisteredSdk } = await import('../adapters/tracing/sdk-tracer.ts')
  return findRegisteredSdk()
}

/** Loaded only here: a process without traces does not even read the code. */
async function openOtlp(config: TracesConfig, { headers, version, log }: TracingParts): Promise<OpenedTracing> {
  const { openOtlpTracer } = await import('../adapters/tracing/otlp-spans.ts')
  const opened = openOtlpTracer({
    ...config,
    headers: headers === null ? {} : (JSON.parse(headers.reveal()) as Record<string, string>),
    resource: {
      'service.version': version,
      'service.instance.id': newUuidV4(),
      'host.name': hostname(),
      ...config.resource,
      'service.name': config.serviceName,
    },
    version,
    log,
  })
  const { tracer } = opened
  return { tracer, log: withTraceIds(log, tracer), [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
}
