import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import type { NodeAbout } from './node-store.ts'
import { createSharedCounts, type SharedCounts } from './shared-counts.ts'

const ABOUT = { version: '1', host: 'h', workers: {} }

/** Processes that say their counts to a store that takes its time. `delays` decide how long each write and each read takes. */
function openService(size: number, delays: Iterator<number>) {
  const store = new Map<string, NodeAbout>()
  const later = async () => {
    for (let turns = delays.next().value ?? 0; turns > 0; turns--) await nextTurn()
  }
  const processes = Array.from({ length: size }, (_, place): SharedCounts => {
    const nodeId = `node-${place}`
    const counts: SharedCounts = createSharedCounts({
      isAlone: false,
      nodeId,
      async hear() {
        const about = { ...ABOUT, counts: counts.told() }
        await later()
        store.set(nodeId, about)
        await later()
        return [...store].map(([id, said]) => ({ id, about: said }))
      },
    })
    store.set(nodeId, { ...ABOUT, counts: {} })
    return counts
  })
  return { processes, store }
}

test('whatever processes open and close at once, together they never exceed the limit by more than a tenth', async () => {
  const step = fc.record({ at: fc.nat(4), opens: fc.integer({ min: 1, max: 12 }), closes: fc.nat(12) })
  const delays = fc.array(fc.nat(3), { minLength: 1, maxLength: 50 })
  await fc.assert(
    fc.asyncProperty(
      ...([
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(step, { maxLength: 20 }),
        delays,
      ] as const),
      async (limit, size, steps, chosen) => {
        const { processes } = openService(size, cycle(chosen))
        const most = limit + Math.floor(limit / 10)
        const total = () => processes.reduce((sum, counts) => sum + counts.count('a'), 0)
        const opened = steps.map(async ({ at, opens, closes }) => {
          const counts = processes[at % size]
          const taken = await Promise.all(Array.from({ length: opens }, () => counts.take('a', limit)))
          assert.ok(total() <= most, `${total()} of ${limit}`)
          const held = taken.filter(Boolean).length
          for (let left = Math.min(closes, held); left > 0; left--) counts.giveBack('a')
        })
        await Promise.all(opened)
        // Nothing is refused for ever: one after the other the rest can be opened, by any of them that has heard of the latest.
        for (let tries = 0; tries < size; tries++) for (const counts of processes) await counts.take('none', 0)
        while (await processes[0]?.take('a', limit)) assert.ok(total() <= most)
        assert.ok(total() <= most)
      },
    ),
    { numRuns: 200 },
  )
})

test('one after the other, processes open all of the limit, however many were refused before', async () => {
  const places = fc.array(fc.nat(3), { minLength: 30, maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.nat(3), places, async (limit, delay, order) => {
      const { processes } = openService(4, cycle([delay]))
      await Promise.all(processes.flatMap((counts) => Array.from({ length: limit }, () => counts.take('a', limit))))
      for (const at of order) await processes[at]?.take('a', limit)
      const total = processes.reduce((sum, counts) => sum + counts.count('a'), 0)
      assert.ok(total >= limit, `${total} of ${limit} are open`)
    }),
    { numRuns: 100 },
  )
})

test('an account that is the only one may have all of its limit in one process', async () => {
  const { processes } = openService(3, cycle([1]))
  const taken = []
  for (let count = 0; count < 25; count++) taken.push(await processes[1]?.take('a', 20))
  assert.equal(taken.filter(Boolean).length, 20)
  assert.equal(await processes[0]?.take('a', 20), false)
})

test('what a dead process had is free when it is no longer known', async () => {
  const { processes, store } = openService(2, cycle([0]))
  for (let count = 0; count < 10; count++) await processes[0]?.take('a', 10)
  assert.equal(await processes[1]?.take('a', 10), false)
  store.delete('node-0')
  assert.equal(await processes[1]?.take('a', 10), true)
})

test('a process that is alone asks nobody', () => {
  const counts = createSharedCounts({ isAlone: true, nodeId: 'x', hear: () => assert.fail('asked') })
  assert.deepEqual([counts.take('a', 1), counts.take('a', 1)], [true, false])
  counts.giveBack('a')
  assert.equal(counts.take('a', 1), true)
})

function* cycle(values: readonly number[]): Generator<number, number> {
  while (true) yield* values
}
