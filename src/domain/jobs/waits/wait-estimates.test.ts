/** Queues that are simulated with random run times: what is said of a wait against when the job starts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../test/support/seeded-random.ts'
import { isWithinTwo } from './known-queues.ts'
import type { PastRun, QueueReading } from './queue-reading.ts'
import { createEstimateWait } from './wait-estimates.ts'

interface World {
  readonly seed: number
  readonly slots: number
  /** Of every how many starts one is another account's. */
  readonly share?: number
  readonly durationMs: (recipe: string, random: () => number) => number
  /** How many wait, on average. */
  readonly depth: number
}

interface Outcome {
  readonly asked: number
  readonly shown: number
  readonly right: number
}

const JOBS = 400

/** Runs the queue whole, then asks of many moments of it what would have been said. */
async function simulate({ seed, slots, durationMs, depth, share = 1 }: World): Promise<Outcome> {
  const random = seededRandom(seed).next
  const runs: PastRun[] = []
  const freeAt = Array.from({ length: slots }, () => 0)
  const meanMs = 10_000
  for (let seq = 0; seq < JOBS; seq += 1) {
    const recipe = random() < 0.7 ? 'short' : 'long'
    // Others take their turns at the same places.
    for (let other = 1; other < share; other += 1) {
      const place = freeAt.indexOf(Math.min(...freeAt))
      freeAt[place] = (freeAt[place] ?? 0) + durationMs('short', random)
    }
    const place = freeAt.indexOf(Math.min(...freeAt))
    const startedAtMs = (freeAt[place] ?? 0) + 50
    const completedAtMs = startedAtMs + durationMs(recipe, random)
    freeAt[place] = completedAtMs
    const waitedMs = (depth * (0.5 + random()) * meanMs * share) / slots
    const createdAtMs = Math.max(runs.at(-1)?.createdAtMs ?? -1e9, startedAtMs - waitedMs)
    runs.push({ recipe, priority: 0, seq, createdAtMs, startedAtMs, completedAtMs })
  }
  const outcome = { asked: 0, shown: 0, right: 0 }
  const endMs = runs.at(-1)?.startedAtMs ?? 0
  for (let ask = 0; ask < 60; ask += 1) {
    const nowMs = endMs * (0.4 + 0.5 * random())
    const waiting = runs.filter(({ createdAtMs, startedAtMs }) => createdAtMs <= nowMs && startedAtMs > nowMs)
    const chosen = waiting[Math.floor(random() * waiting.length)]
    if (chosen === undefined) continue
    const said = await askAt(nowMs, runs, waiting, chosen, slots)
    outcome.asked += 1
    if (said === null) continue
    outcome.shown += 1
    if (isWithinTwo(said * 1000, chosen.startedAtMs - nowMs)) outcome.right += 1
  }
  return outcome
}

async function askAt(
  nowMs: number,
  runs: readonly PastRun[],
  waiting: readonly PastRun[],
  chosen: PastRun,
  maxSlots: number,
): Promise<number | null> {
  const reading: QueueReading = {
    waiting: waiting.slice(0, 200).map(({ seq, recipe, priority }) => ({ id: String(seq), recipe, priority })),
    held: runs.filter(({ startedAtMs, completedAtMs }) => startedAtMs <= nowMs && completedAtMs > nowMs),
    ended: runs
      .filter(({ completedAtMs }) => completedAtMs <= nowMs)
      .sort((one, other) => other.completedAtMs - one.completedAtMs)
      .slice(0, 128),
  }
  const estimate = createEstimateWait({
    store: { readQueue: async () => reading },
    clock: { now: () => new Date(nowMs) },
  })
  return estimate({ accountId: 'a', pool: 'p', jobId: String(chosen.seq), maxSlots })
}

const even = (recipe: string, random: () => number) => (recipe === 'short' ? 5000 : 20_000) * (0.6 + 0.8 * random())
const wild = (_recipe: string, random: () => number) => 500 / Math.max(random(), 0.002)

for (const [name, world] of Object.entries({
  'one engine': { slots: 1, depth: 8, durationMs: even },
  'four engines': { slots: 4, depth: 30, durationMs: even },
  'engines shared with others': { slots: 2, depth: 12, share: 3, durationMs: even },
  'a short queue': { slots: 1, depth: 2, durationMs: even },
  'run times that may be anything': { slots: 1, depth: 8, durationMs: wild },
})) {
  test(`${name}: what is said of a wait is right within a factor of two in nine of ten cases`, async () => {
    const all = { asked: 0, shown: 0, right: 0 }
    for (const seed of [1, 2, 3]) {
      const { asked, shown, right } = await simulate({ ...world, seed })
      all.asked += asked
      all.shown += shown
      all.right += right
    }
    assert.ok(all.right >= 0.9 * all.shown, `${all.right} of ${all.shown}`)
    if (world.durationMs === even && world.depth > 2)
      assert.ok(all.shown >= 0.5 * all.asked, `shown ${all.shown} of ${all.asked}`)
  })
}
