/** What an operator sees of requests: one observation each, and spans only when somebody asked for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INVALID_SPAN_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api'
import { findRegisteredSdk } from '../../src/adapters/tracing/sdk-tracer.ts'
import { createTraceRequest } from '../../src/surfaces/kit/tracing.ts'
import type { AnsweredRequest } from '../../src/surfaces/server.ts'
import { JOB_ID, makeJob } from '../support/app/memory-jobs.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'
import { openEvents } from '../support/clients/event-reader.ts'
import { waitUntil } from '../support/wait-until.ts'

interface RecordedSpan {
  name: string
  readonly attributes: Record<string, unknown>
  isEnded: boolean
}

function recordSpans(): RecordedSpan[] {
  const spans: RecordedSpan[] = []
  const startSpan: Tracer['startSpan'] = (name, options) => {
    const record: RecordedSpan = { name, attributes: { ...options?.attributes }, isEnded: false }
    spans.push(record)
    const span: Partial<Span> = {
      spanContext: () => ({ ...INVALID_SPAN_CONTEXT, traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }),
      updateName(to) {
        record.name = to
        return span as Span
      },
      setAttributes(attributes) {
        Object.assign(record.attributes, attributes)
        return span as Span
      },
      setStatus: () => span as Span,
      end() {
        record.isEnded = true
      },
    }
    return span as Span
  }
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: () => {} }) as unknown as Tracer })
  return spans
}

test('without a registered SDK there is no tracing at all', () => {
  assert.equal(findRegisteredSdk(), null)
})

test('with a registered SDK every request is a span named after its route, ended with its status', async (t) => {
  const spans = recordSpans()
  t.after(() => trace.disable())
  const tracer = findRegisteredSdk()
  assert.ok(tracer !== null)
  spans.length = 0
  await using service = await startSurface({ server: { trace: createTraceRequest(tracer) } })
  service.jobs.put(makeJob())
  await call(service.url, `/api/v2/jobs/${JOB_ID}?secret=1`)
  await call(service.url, `/api/v2/jobs/${JOB_ID}`)
  await call(service.url, '/api/v2/jobs', { method: 'POST', body: '{' })
  using reader = openEvents(service.url, `/api/v2/jobs/${JOB_ID}/events`)
  await reader.next()
  await waitUntil(() => spans.every((span) => span.isEnded))
  assert.deepEqual(
    spans.map(({ name, attributes }) => [name, attributes['http.response.status_code']]),
    [
      ['GET /api/v2/jobs/:id', 200],
      ['GET /api/v2/jobs/:id', 200],
      ['POST /api/v2/jobs', 400],
      ['GET /api/v2/jobs/:id/events', 200],
    ],
  )
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

test('every answered request is observed once, with the id that its caller got', async () => {
  const seen: AnsweredRequest[] = []
  await using service = await startSurface({ server: { onAnswered: (request) => void seen.push(request) } })
  service.jobs.put(makeJob())
  const cached = await call(service.url, `/api/v2/jobs/${JOB_ID}`)
  const unknown = await call(service.url, '/nope')
  await waitUntil(() => seen.length >= 2)
  assert.deepEqual(
    seen.map(({ requestId, method, route, status }) => [requestId, method, route, status]),
    [
      [cached.headers['x-service-request-id'], 'GET', '/api/v2/jobs/:id', 200],
      [unknown.headers['x-service-request-id'], 'GET', '', 404],
    ],
  )
  assert.ok(seen.every((request) => request.durationMs >= 0))
})
