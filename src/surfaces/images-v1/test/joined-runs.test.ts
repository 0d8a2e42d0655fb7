import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualTicker } from '../../../../test/support/manual-ticker.ts'
import type { WaitForRun } from '../../../domain/endpoints/wait-for-run.ts'
import { createJoinedRuns, type StartedRun } from '../joined-runs.ts'

function openRuns() {
  const ticker = createManualTicker()
  const ends: (() => void)[] = []
  const waits: WaitForRun = {
    wait: (job) => new Promise((resolve) => ends.push(() => resolve({ job, hasEnded: true }))),
    close() {},
  }
  let started = 0
  const start = async () => ({ version: {}, jobs: [{ id: String(++started) }] }) as unknown as StartedRun
  const runs = createJoinedRuns({ waits, ticker })
  const idOf = async ({ ended }: ReturnType<typeof runs.join>) => (await ended)[0]?.id
  const begun = async (key: string) => {
    const run = runs.join(key, start)
    await run.started
    await new Promise(setImmediate)
    return run
  }
  const endAll = () => {
    for (const end of ends.splice(0)) end()
  }
  return { ticker, idOf, begun, endAll }
}

test('an equal request joins the run that is under way; another one makes its own', async () => {
  const { begun, idOf, endAll } = openRuns()
  const all = [await begun('a'), await begun('a'), await begun('b')]
  endAll()
  assert.deepEqual(await Promise.all(all.map(idOf)), ['1', '1', '2'])
})

test('a run whose answer nobody received is joined for a minute after its end', async () => {
  const { begun, idOf, endAll, ticker } = openRuns()
  const first = await begun('a')
  endAll()
  await first.ended
  await new Promise(setImmediate)
  ticker.advance(59_000)
  assert.equal(await idOf(await begun('a')), '1')
  ticker.advance(1000)
  const next = await begun('a')
  endAll()
  assert.equal(await idOf(next), '2')
})

test('once the answer about the end was received, the next request is another run; before that it is not', async () => {
  const { begun, idOf, endAll, ticker } = openRuns()
  const first = await begun('a')
  first.delivered()
  assert.equal(await begun('a'), first)
  endAll()
  await first.ended
  await new Promise(setImmediate)
  first.delivered()
  assert.equal(ticker.count(), 0)
  const next = await begun('a')
  endAll()
  assert.equal(await idOf(next), '2')
})
