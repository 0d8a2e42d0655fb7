/** Spans on their way to a collector: what is told, what is cut, and what happens when nobody takes it. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { ROOT_CONTEXT, SpanKind, TraceFlags, trace } from '@opentelemetry/api'
import { SamplingDecision } from '@opentelemetry/sdk-trace'
import { type Log, silentLog } from '../../../lib/log.ts'
import { startTraceCollector } from '../../../test/support/network/trace-collector.ts'
import { startHttpFake } from '../../../test/support/providers/http-fake.ts'
import { createSampler, openOtlpTracer, type SamplerName } from './otlp-spans.ts'

function open(url: string, log: Log = silentLog) {
  const options = { url: `${url}/v1/traces`, headers: {}, timeoutMs: 500, resource: { 'service.name': 'x' }, log }
  return openOtlpTracer({ ...options, version: 'test', sampler: 'always_on', ratio: 1 })
}

function createTold(): { readonly log: Log; readonly told: Record<string, unknown>[] } {
  const told: Record<string, unknown>[] = []
  const note = (fields: object) => void told.push({ ...fields })
  return { told, log: { ...silentLog, warn: note, info: note } }
}

test('a span is told with its bounds kept, once, and never with a negative length', async () => {
  await using collector = await startTraceCollector()
  const opened = open(collector.url)
  const { tracer } = opened
  const parent = tracer.start('n'.repeat(500), { kind: 'server', attributes: { text: 't'.repeat(5000), count: 7 } })
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`key${index}`, true]))
  parent.set(many)
  const startMs = Date.now() + 1_000_000
  tracer.within(parent, () => tracer.start('child', { startMs }).end())
  parent.fail('refused')
  parent.fail('refused again')
  parent.end()
  parent.end()
  await opened[Symbol.asyncDispose]()
  const [child, told] = collector.spans
  assert.equal(collector.spans.length, 2)
  assert.deepEqual([child.parentSpanId, child.traceId], [told.spanId, told.traceId])
  assert.equal(child.endMs, child.startMs)
  assert.deepEqual([told.name.length, String(told.attributes['text']).length, told.attributes['count']], [120, 256, 7])
  assert.equal(Object.keys(told.attributes).length, 32)
  assert.equal(told.failure, 'refused')
})

test('a span may begin and end before the process did', async () => {
  await using collector = await startTraceCollector()
  const opened = open(collector.url)
  const startMs = 1_700_000_000_000.25
  opened.tracer.start('job.wait', { startMs }).end(startMs + 1500)
  await opened[Symbol.asyncDispose]()
  const [{ startMs: from, endMs: to }] = collector.spans
  assert.deepEqual([from, to - from], [startMs, 1500])
})

test('a collector that is away loses spans and nothing else: what waits is bounded, and so is the end', async () => {
  const gone = await startHttpFake(() => {})
  await gone[Symbol.asyncDispose]()
  const { told, log } = createTold()
  const opened = open(gone.url, log)
  for (let count = 0; count < 10_000; count++) opened.tracer.start('one').end()
  await opened[Symbol.asyncDispose]()
  assert.equal(told.at(-1)?.['dropped'], 10_000)
  assert.ok(told.length <= 3, 'it is not said for every batch')
})

test('what the collector refuses for good is not sent again, and what it does not take is told', async () => {
  await using collector = await startTraceCollector()
  collector.answerWith(400)
  const { told, log } = createTold()
  const opened = open(collector.url, log)
  opened.tracer.start('one').end()
  await opened[Symbol.asyncDispose]()
  assert.equal(collector.batches.length, 1)
  assert.deepEqual(told.at(-1), { dropped: 1 })
})

test('a sampler decides where a trace begins, and follows the caller where it is told to', () => {
  const ids = Array.from({ length: 64 }, (_, index) => createHash('md5').update(`${index}`).digest('hex'))
  const decide = (name: SamplerName, traceId: string, isCallerSampled?: boolean) => {
    const traceFlags = isCallerSampled === true ? TraceFlags.SAMPLED : TraceFlags.NONE
    const caller = { traceId, spanId: 'b'.repeat(16), isRemote: true, traceFlags }
    const under = isCallerSampled === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, caller)
    const sampler = createSampler(name, 0.5)
    return (
      sampler.shouldSample(under, traceId, 'x', SpanKind.SERVER, {}, []).decision ===
      SamplingDecision.RECORD_AND_SAMPLED
    )
  }
  const taken = ids.filter((id) => decide('traceidratio', id))
  assert.ok(taken.length > 0 && taken.length < ids.length, `${taken.length} of ${ids.length}`)
  assert.deepEqual(
    ids.filter((id) => decide('traceidratio', id)),
    taken,
    'by the id, in every process alike',
  )
  for (const id of ids) {
    assert.equal(decide('parentbased_traceidratio', id, true), true)
    assert.equal(decide('parentbased_traceidratio', id), taken.includes(id))
  }
  const [id = ''] = ids
  assert.equal(decide('parentbased_always_on', id, false), false)
  assert.equal(decide('parentbased_always_on', id), true)
  assert.equal(decide('parentbased_always_off', id), false)
  assert.equal(decide('parentbased_always_off', id, true), true)
  assert.equal(decide('always_on', id, false), true)
  assert.equal(decide('always_off', id, true), false)
})
