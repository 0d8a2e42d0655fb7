/** A collector that takes OTLP/HTTP in Protocol Buffers, decodes it strictly, and knows the spans of each trace by name. */
import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { all, bytes, type Message, readMessage, text } from '../proto-message.ts'
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

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: HeardSpan[] = []
  const batches: { path: string; headers: IncomingHttpHeaders; text: string }[] = []
  let status = 200
  const fake = await startHttpFake(async (request, response) => {
    const body = await readBody(request)
    batches.push({ path: `${request.method} ${request.url}`, headers: request.headers, text: body.toString('utf8') })
    if (status === 200) spans.push(...readRequest(body))
    response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end()
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

function readRequest(body: Buffer): HeardSpan[] {
  return all(readMessage(body), 1).flatMap((resourceSpans) => {
    const { 1: resource, 2: scopeSpans } = readMessage(resourceSpans)
    const about = readAttributes(all(readMessage(bytes(resource?.[0])), 1))
    return (scopeSpans ?? []).flatMap((one) => {
      const { 1: scope, 2: spans } = readMessage(bytes(one))
      assert.equal(text(readMessage(bytes(scope?.[0]))[1]), 'atelier')
      return (spans ?? []).map((span) => readSpan(readMessage(bytes(span)), about))
    })
  })
}

function readSpan(span: Message, about: HeardSpan['attributes']): HeardSpan {
  const [traceId, spanId] = [span[1], span[2]].map((field) => bytes(field?.[0]).toString('hex'))
  const parentSpanId = span[4] === undefined ? null : bytes(span[4][0]).toString('hex')
  assert.match(traceId, /^[0-9a-f]{32}$/)
  assert.match(spanId, /^[0-9a-f]{16}$/)
  if (parentSpanId !== null) assert.match(parentSpanId, /^[0-9a-f]{16}$/)
  const name = text(span[5])
  const [startMs, endMs] = [span[7], span[8]].map((field) => Number(bytes(field?.[0]).readBigUInt64LE()) / 1e6)
  assert.ok(startMs <= endMs, `${name} ends before it begins`)
  assert.ok(startMs > 1.6e12 && endMs < 4e12, `${name} is of ${startMs}`)
  const status = span[15] === undefined ? null : readMessage(bytes(span[15][0]))
  return {
    ...{ traceId, spanId, parentSpanId, name },
    ...{ kind: Number(span[6]?.[0]), startMs, endMs, attributes: readAttributes(all(span, 9)) },
    failure: status?.[3]?.[0] === 2 ? text(status[2]) : null,
    service: String(about['service.name']),
    instance: String(about['service.instance.id']),
  }
}

function readAttributes(list: readonly Buffer[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    list.map((pair) => {
      const { 1: key, 2: value } = readMessage(pair)
      const { 1: string, 2: bool, 3: int, 4: double } = readMessage(bytes(value?.[0]))
      if (int !== undefined) return [text(key), Number(int[0])]
      if (bool !== undefined) return [text(key), bool[0] === 1]
      return [text(key), double === undefined ? text(string) : bytes(double[0]).readDoubleLE()]
    }),
  )
}
