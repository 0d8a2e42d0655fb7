/** Whatever jobs wait, and however long they take: each comes to its end, and nobody waits for long where there are two slots. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { seededRandom } from '../../../../test/support/seeded-random.ts'
import type { JobRun } from '../run/job-run.ts'
import { createTurnKeeper } from './turn-keeper.ts'

const LOOK_MS = 500
const SPENT_TURNS = 65

interface SimJob {
  readonly id: string
  readonly accountId: string
  readonly lengthMs: number
  readonly dueMs: number
}

/** A service with one pool, where every run begins anew: no node is found in a cache. */
class Service {
  readonly #clock = createFixedClock(new Date(0))
  readonly #slots: number
  readonly #waiting: SimJob[] = []
  readonly #runs = new Map<JobRun, SimJob>()
  readonly #served = new Map<string, number>()
  #claims = 0
  readonly waitedMs = new Map<string, number>()
  readonly endedMs = new Map<string, number>()

  constructor(slots: number) {
    this.#slots = slots
  }

  #runningOf(accountId: string): number {
    return [...this.#runs.values()].filter((job) => job.accountId === accountId).length
  }

  #claim(): void {
    const servedOf = (job: SimJob) => this.#served.get(job.accountId) ?? 0
    while (this.#runs.size < this.#slots && this.#waiting.length > 0) {
      const job = this.#waiting.reduce((best, each) => (servedOf(each) < servedOf(best) ? each : best))
      this.#waiting.splice(this.#waiting.indexOf(job), 1)
      this.#served.set(job.accountId, ++this.#claims)
      const startedAt = this.#clock.now()
      const claim = { engineId: 'engine', job: { id: job.id, accountId: job.accountId, startedAt } }
      this.#runs.set({ claim, lease: { jobId: job.id }, isComputing: true } as unknown as JobRun, job)
      if (!this.waitedMs.has(job.id)) this.waitedMs.set(job.id, startedAt.getTime() - job.dueMs)
    }
  }

  #endRuns(): void {
    const nowMs = this.#clock.now().getTime()
    for (const [run, job] of this.#runs) {
      if (nowMs - (run.claim.job.startedAt?.getTime() ?? nowMs) < job.lengthMs) continue
      this.#runs.delete(run)
      this.endedMs.set(job.id, nowMs)
    }
  }

  async run(jobs: readonly SimJob[], untilMs: number): Promise<void> {
    const keeper = createTurnKeeper({
      clock: this.#clock,
      log: silentLog,
      fleet: { resident: () => ({ engineId: 'engine', hasRoom: this.#runs.size < this.#slots, lanes: null }) },
      store: {
        findOutwaited: async ({ accountIds }) =>
          accountIds.filter((holder) =>
            this.#waiting.some(
              ({ accountId }) =>
                accountId !== holder && this.#runningOf(accountId) < Math.max(1, this.#runningOf(holder) - 1),
            ),
          ),
      },
      workers: () => [
        {
          pool: 'default',
          stats: () => ({ workers: this.#slots, running: this.#runs.size, isDraining: false }),
          hasRoom: () => this.#runs.size < this.#slots,
          computing: () => [...this.#runs.keys()],
          giveWay: async (run) => {
            const job = this.#runs.get(run)
            assert.ok(job !== undefined)
            this.#runs.delete(run)
            this.#waiting.push(job)
            this.#served.set(job.accountId, this.#claims + SPENT_TURNS)
          },
        },
      ],
    })
    const coming = jobs.toSorted((one, other) => one.dueMs - other.dueMs)
    while (this.endedMs.size < jobs.length && this.#clock.now().getTime() < untilMs) {
      const nowMs = this.#clock.now().getTime()
      while (coming[0] !== undefined && coming[0].dueMs <= nowMs) this.#waiting.push(...coming.splice(0, 1))
      this.#endRuns()
      this.#claim()
      await keeper.look()
      this.#claim()
      this.#clock.advance(LOOK_MS)
    }
  }
}

test('two accounts with a job of one long node each, on a single slot: both end', async () => {
  for (const lengthMs of [50_000, 600_000]) {
    const service = new Service(1)
    const jobs = ['a', 'b'].map((id) => ({ id, accountId: id, lengthMs, dueMs: 0 }))
    await service.run(jobs, 2 * lengthMs + 400_000)
    assert.deepEqual([...service.endedMs.keys()].sort(), ['a', 'b'], `${lengthMs} ms`)
  }
})

test('jobs of any length end, and a short one of somebody else gets a slot in time', async () => {
  const LONGEST_MS = 600_000
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed)
    const slots = 1 + (seed % 4)
    const long = Array.from({ length: random.between(2, 9) }, (_, index) => ({
      id: `long ${index}`,
      accountId: `account ${random.between(0, 4)}`,
      lengthMs: random.between(1000, LONGEST_MS),
      dueMs: random.between(0, 60_000),
    }))
    // One at a time, so that it does not wait for its like.
    const short = Array.from({ length: 20 }, (_, index) => ({
      id: `short ${index}`,
      accountId: `passer-by ${index}`,
      lengthMs: 1000,
      dueMs: (index + 1) * 120_000 + random.between(0, 60_000),
    }))
    const jobs = [...long, ...short]
    const service = new Service(slots)
    const sumMs = long.reduce((sum, { lengthMs }) => sum + lengthMs, 0)
    await service.run(jobs, 22 * 120_000 + sumMs + long.length * 1_200_000)
    const lost = jobs.filter(({ id }) => !service.endedMs.has(id))
    assert.deepEqual(lost, [], `seed ${seed}, ${slots} slots`)
    // On a single slot they wait at most for a run that goes to its end, which the bounds of a node and of a run limit.
    const longestMs = Math.max(...short.map(({ id }) => service.waitedMs.get(id) ?? 0))
    assert.ok(longestMs <= (slots > 1 ? 15_000 : LONGEST_MS + 15_000), `seed ${seed}, ${slots} slots: ${longestMs} ms`)
  }
})
