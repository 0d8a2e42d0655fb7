import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSandboxProvider } from '../../../src/adapters/providers/sandbox/sandbox-provider.ts'
import type { JsonRecord } from '../../../src/domain/models/catalog/model.ts'
import type { SubmitOutcome } from '../../../src/domain/models/provider.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { shippedModel } from '../../support/providers/provider-under-test.ts'

function createBench() {
  const clock = createFixedClock()
  const sleep = async (ms: number) => clock.advance(ms)
  const provider = createSandboxProvider({ clock, sleep })
  const stop = new AbortController()
  const options = () => ({ signal: stop.signal, deadline: new Date(clock.now().getTime() + 60_000) })
  async function submit(id: string, input: JsonRecord = {}): Promise<SubmitOutcome> {
    const model = await shippedModel(`sandbox/${id}`)
    const body = Buffer.from(JSON.stringify(input))
    return provider.submit({ model, accountId: 'a', submitKey: 'k', body, input }, options())
  }
  return { clock, provider, submit, options, stop }
}

async function bodyOf(outcome: SubmitOutcome): Promise<Buffer> {
  assert.equal(outcome.outcome, 'finished')
  const chunks: Uint8Array[] = []
  const { body } = outcome.result
  if (Buffer.isBuffer(body)) return body
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const REFUSALS: [string, string][] = [
  ['refuse', 'policy 400 ended'],
  ['invalid', 'invalid 422 none'],
  ['rate-limit', 'failed 429 none'],
  ['fail', 'failed 500 ended'],
  ['broken', 'failed 200 ended'],
  ['empty', 'failed 200 ended'],
  ['provider-timeout', 'timeout 504 ended'],
  ['silent', 'timeout null ended'],
]

for (const [id, expected] of REFUSALS) {
  test(`sandbox/${id} always ends as: ${expected}`, async () => {
    const outcome = await createBench().submit(id)
    assert.equal(outcome.outcome, 'refused')
    const { reason, upstreamStatus, generation } = outcome.refusal
    assert.equal(`${reason} ${upstreamStatus} ${generation}`, expected)
  })
}

test('an answer takes as long as it is told to, also beyond the deadline, until it is stopped', async () => {
  const bench = createBench()
  const before = bench.clock.now().getTime()
  assert.deepEqual(JSON.parse(String(await bodyOf(await bench.submit('echo', { value: [1], latency_ms: 2500 })))), {
    output: [1],
  })
  assert.equal(bench.clock.now().getTime() - before, 2500)
  assert.equal((await bench.submit('echo', { latency_ms: 70_000 })).outcome, 'finished')
  bench.stop.abort()
  assert.equal((await bench.submit('echo', { latency_ms: 1 })).outcome, 'refused')
})

test('the same seed draws the same picture, another seed another', async () => {
  const bench = createBench()
  const draw = async (seed: number) => String(await bodyOf(await bench.submit('image', { width: 8, height: 8, seed })))
  assert.equal(await draw(7), await draw(7))
  assert.notEqual(await draw(7), await draw(8))
  const { data } = JSON.parse(await draw(7))
  assert.match(data[0].b64_json, /^iVBORw0KGgo/)
})

test('a large answer has exactly the size that was asked for', async () => {
  const outcome = await createBench().submit('large', { size_bytes: 200_001 })
  assert.equal((await bodyOf(outcome)).length, 200_001)
})

test('a task is finished when its time has come, also by another process', async () => {
  const bench = createBench()
  const submitted = await bench.submit('task', { value: 'v', latency_ms: 1000 })
  assert.equal(submitted.outcome, 'accepted')
  const other = createSandboxProvider({ clock: bench.clock, sleep: async () => {} })
  const task = {
    model: await shippedModel('sandbox/task'),
    accountId: 'a',
    handle: JSON.parse(JSON.stringify(submitted.handle)),
  }
  assert.equal((await other.poll(task, bench.options())).outcome, 'pending')
  bench.clock.advance(1000)
  const outcome = await other.poll(task, bench.options())
  assert.equal(outcome.outcome === 'finished' && String(outcome.result.body), '{"status":"succeeded","output":"v"}\n')
})
