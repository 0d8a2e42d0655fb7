/** Spans on their way to a collector: what is told, what is cut, and what happens when nobody takes it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Log, silentLog } from '../../../lib/log.ts'
import { startTraceCollector } from '../../../test/support/network/trace-collector.ts'
import { startHttpFake } from '../../../test/support/providers/http-fake.ts'
import type { EndedSpan } from './otlp-proto.ts'
import { createOtlpTracer } from './otlp-tracer.ts'
import { createSampler, type SamplerName } from './samplers.ts'
import { openSpanExporter } from './span-exporter.ts'

const TRACE = 'a'.repeat(24)
const context = (last: string, isSampled: boolean) => ({
  ...{ traceId: TRACE + last, spanId: 'b'.repeat(16), isSampled, state: '' },
})

function open(url: string, log: Log = silentLog) {
  const options = { url: `${url}/v1/traces`, headers: {}, timeoutMs: 5000, resource: { 'service.name': 'x' }, log }
  return openSpanExporter({ ...options, version: 'test', gatherMs: 0 })
}

function createTracer(onEnded: (span: EndedSpan) => void) {
  let nowMs = 1_700_000_000_000
  return createOtlpTracer({ sampler: () => true, onEnded, now: () => (nowMs += 0.25) })
}

test('a span is told with its bounds kept, once, and never with a negative length', async () => {
  await using collector = await startTraceCollector()
  const exporter = open(collector.url)
  const tracer = createTracer(exporter.add)
  const parent = tracer.start('n'.repeat(500), { kind: 'server', attributes: { text: 't'.repeat(5000), count: 7 } })
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`key${index}`, true]))
  parent.set(many)
  tracer.within(parent, () => tracer.start('child', { startMs: 1_800_000_000_000 }).end())
  parent.fail('refused')
  parent.end()
  parent.end()
  await exporter[Symbol.asyncDispose]()
  const [child, told] = collector.spans
  assert.equal(collector.spans.length, 2)
  assert.deepEqual([child.parentSpanId, child.traceId], [told.spanId, told.traceId])
  assert.equal(child.endMs, child.startMs)
  assert.deepEqual([told.name.length, String(told.attributes['text']).length, told.attributes['count']], [120, 256, 7])
  assert.equal(Object.keys(told.attributes).length, 32)
  assert.equal(told.failure, 'refused')
})

test('a collector that is away loses spans and nothing else: what waits is bounded, and so is the end', async () => {
  const gone = await startHttpFake(() => {})
  await gone[Symbol.asyncDispose]()
  const told: Record<string, unknown>[] = []
  const log: Log = { ...silentLog, warn: (fields) => void told.push({ ...fields }) }
  const exporter = open(gone.url, log)
  const tracer = createTracer(exporter.add)
  for (let count = 0; count < 10_000; count++) tracer.start('one').end()
  await exporter[Symbol.asyncDispose]()
  assert.equal(told.at(-1)?.['dropped'], 10_000)
  assert.ok(told.length <= 3, 'it is not said for every batch')
})

test('what the collector refuses for good is not sent again', async () => {
  await using collector = await startTraceCollector()
  collector.answerWith(400)
  const exporter = open(collector.url)
  createTracer(exporter.add).start('one').end()
  await exporter[Symbol.asyncDispose]()
  assert.equal(collector.batches.length, 1)
})

test('a sampler decides where a trace begins, and follows the caller where it is told to', () => {
  const decide = (name: SamplerName, last: string, parent: ReturnType<typeof context> | null) =>
    createSampler(name, 0.5)(TRACE + last, parent)
  const [low, high] = ['7fffffff', '80000000']
  assert.deepEqual(
    [decide('traceidratio', low, null), decide('traceidratio', high, null)],
    [true, false],
    'by the id, in every process alike',
  )
  assert.equal(decide('parentbased_traceidratio', high, context(high, true)), true)
  assert.equal(decide('parentbased_always_on', low, context(low, false)), false)
  assert.equal(decide('parentbased_always_on', low, null), true)
  assert.equal(decide('parentbased_always_off', low, null), false)
  assert.equal(decide('always_off', low, context(low, true)), false)
  assert.equal(decide('always_on', low, context(low, false)), true)
})
