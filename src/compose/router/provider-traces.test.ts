import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Attributes, type Span, type SpanOptions, trace } from '@opentelemetry/api'
import { withTraces } from './provider-traces.ts'

const EXCHANGE = { provider: 'bfl', model: 'bfl/flux-2-pro', kind: 'poll', status: 502, milliseconds: 40 } as const

test('without a tracer nothing is traced; with one, each exchange is a span with provider, step and outcome', (t) => {
  let observed = 0
  const observe = () => void observed++
  assert.equal(withTraces(observe), observe)
  const spans: { name: string; attributes: Attributes; failed: boolean }[] = []
  function startSpan(name: string, { attributes = {} }: SpanOptions): Span {
    const made = { name, attributes: { ...attributes }, failed: false }
    const span = {
      spanContext: () => ({ traceId: '1'.repeat(32), spanId: '1'.repeat(16), traceFlags: 1 }),
      setAttribute: (key: string, value: number) => Object.assign(made.attributes, { [key]: value }),
      setStatus: () => Object.assign(made, { failed: true }),
      end: () => void spans.push(made),
    }
    return span as unknown as Span
  }
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: () => undefined as never }) })
  t.after(() => trace.disable())
  withTraces(observe)(EXCHANGE)
  assert.equal(observed, 1)
  const attributes = { 'atelier.provider': 'bfl', 'atelier.model': 'bfl/flux-2-pro', 'http.response.status_code': 502 }
  assert.deepEqual(spans, [{ name: 'bfl poll', attributes, failed: true }])
})
