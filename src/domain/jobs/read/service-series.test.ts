import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createServiceSeries } from './service-series.ts'

const START = Date.parse('2026-01-31T12:00:00Z')
const NONE = { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }

function openSeries() {
  let now = START
  let queued = 0
  const asked: [number, number][] = []
  const series = createServiceSeries({
    countJobs: async () => ({ ...NONE, queued, running: 1, canceling: 1 }),
    async countEnded(from, to) {
      asked.push([from.getTime() - START, to.getTime() - START])
      return { ...NONE, succeeded: 2 }
    },
    spentBetween: async () => 500,
    clock: { now: () => new Date(now) },
  })
  async function pass(ms: number, waiting: number): Promise<void> {
    now += ms
    queued = waiting
    await series.look()
  }
  return { series, asked, pass }
}

test('levels are told as they were at most, ends and spend as their sum, and what was not seen as null', async () => {
  const { series, pass, asked } = openSeries()
  await pass(0, 3)
  await pass(5_000, 99)
  await pass(5_000, 7)
  await pass(10_000, 4)
  const { from, values } = series.read({
    names: ['queued', 'running', 'succeeded', 'spend'],
    stepMs: 20_000,
    points: 3,
  })
  assert.equal(from.getTime(), START - 20_000)
  assert.deepEqual(values, {
    queued: [null, 7, 4],
    running: [null, 2, 2],
    succeeded: [null, 4, 2],
    spend: [null, 1000, 500],
  })
  assert.deepEqual(asked, [
    [-10_000, 0],
    [0, 10_000],
    [10_000, 20_000],
  ])
})

test('what is older than a day is forgotten, and a long pause is not taken for a burst', async () => {
  const { series, pass, asked } = openSeries()
  await pass(0, 1)
  await pass(90_000_000, 2)
  const { values } = series.read({ names: ['queued'], stepMs: 3_600_000, points: 25 })
  assert.deepEqual(
    values['queued']?.filter((value) => value !== null),
    [2],
  )
  assert.deepEqual(asked.at(-1), [89_990_000, 90_000_000])
})
