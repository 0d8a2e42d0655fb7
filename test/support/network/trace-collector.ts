/** A collector that takes OTLP/HTTP in JSON, decodes it strictly, and knows the spans of each trace by name. */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { readBody, startHttpFake } from '../providers/http-fake.ts'
import { waitUntil } from '../wait-until.ts'

export interface HeardSpan {
  readonly traceId: string
  readonly spanId: string
  /** null: the trace begins with it. */
  readonly parentSpanId: string | null
  readonly name: string
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** null: it went well. */
  readonly failure: string | null
  readonly service: string
  readonly instance: string
}

export interface TraceCollector extends AsyncDisposable {
  readonly url: string
  readonly spans: readonly HeardSpan[]
  readonly batches: readonly { readonly path: string; readonly headers: IncomingHttpHeaders; readonly text: string }[]
  /** Answers with this status from now on. */
  answerWith(status: number): void
  /** Resolves with the first span of this name that fulfils the condition. */
  until(name: string, isIt?: (span: HeardSpan) => boolean): Promise<HeardSpan>
}

// biome-ignore lint/suspicious/noExplicitAny: what came over the wire is checked below
type Json = any

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: HeardSpan[] = []
  const batches: { path: string; headers: IncomingHttpHeaders; text: string }[] = []
  let status = 200
  const fake = await startHttpFake(async (request, response) => {
    const text = (await readBody(request)).toString('utf8')
    batches.push({ path: `${request.method} ${request.url}`, headers: request.headers, text })
    if (status === 200) spans.push(...readRequest(JSON.parse(text)))
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  })
  return {
    url: fake.url,
    spans,
    batches,
    answerWith(next) {
      status = next
    },
    until: (name, isIt = () => true) =>
      waitUntil(
        () => spans.find((span) => span.name === name && isIt(span)) ?? null,
        () => `a span ${name} among ${spans.map((span) => span.name).join(', ')}`,
      ),
    [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose](),
  }
}

function readRequest({ resourceSpans }: Json): HeardSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }: Json) => {
    const about = readAttributes(resource.attributes)
    return scopeSpans.flatMap(({ scope, spans }: Json) => {
      assert.equal(scope.name, 'atelier')
      return spans.map((span: Json) => readSpan(span, about))
    })
  })
}

function readSpan(span: Json, about: HeardSpan['attributes']): HeardSpan {
  assert.match(span.traceId, /^[0-9a-f]{32}$/)
  assert.match(span.spanId, /^[0-9a-f]{16}$/)
  if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^[0-9a-f]{16}$/)
  for (const time of [span.startTimeUnixNano, span.endTimeUnixNano]) assert.match(time, /^\d{19}$/)
  const [startMs, endMs] = [span.startTimeUnixNano, span.endTimeUnixNano].map((time) => Number(BigInt(time)) / 1e6)
  assert.ok(startMs <= endMs, `${span.name} ends before it begins`)
  return {
    ...{ traceId: span.traceId, spanId: span.spanId, parentSpanId: span.parentSpanId ?? null, name: span.name },
    ...{ kind: span.kind, startMs, endMs, attributes: readAttributes(span.attributes) },
    failure: span.status?.code === 2 ? span.status.message : null,
    service: String(about['service.name']),
    instance: String(about['service.instance.id']),
  }
}

function readAttributes(list: Json): Record<string, string | number | boolean> {
  return Object.fromEntries(
    list.map(({ key, value }: Json) => {
      if ('intValue' in value) return [key, Number(value.intValue)]
      return [key, value.stringValue ?? value.boolValue ?? value.doubleValue]
    }),
  )
}
