/**
 * Random histories of a job store: submits, claims, writes of current and of long-lost owners, cancels, releases, lapsed
 * leases and retention, several at a time. After every step the rules of the state machine are checked against the rows.
 * A failing history is named by its seed and can be run again.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Job } from '../../../src/domain/jobs/job.ts'
import type { Lease } from '../../../src/domain/jobs/job-store.ts'
import { toJobError } from '../../../src/domain/jobs/run/run-moves.ts'
import { canMove, isTerminal, type JobStatus, statesBeforeEnd } from '../../../src/domain/jobs/transitions.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { ACCOUNT, ANYTHING, openRig, RETENTION_MS, type Rig, SAVE } from './job-rig.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]
const STEPS = 60
const clock = createFixedClock()
let rig: Rig
before(async () => {
  rig = await openRig({ clock, maxRunning: 4, maxQueued: 30 })
})
after(() => rig.close())

class History {
  readonly #random: SeededRandom
  readonly #known = new Map<string, Job>()
  /** Every lease there ever was, the lost ones too. */
  readonly #leases: Lease[] = []

  constructor(random: SeededRandom) {
    this.#random = random
  }

  readonly #acts: Readonly<Record<string, () => Promise<unknown>>> = {
    submit: async () => {
      const job = await rig.submit(SAVE, { priority: this.#random.between(-2, 3) }).catch(() => null)
      if (job !== null) this.#known.set(job.id, job)
    },
    claim: async () => {
      const now = clock.now()
      const leaseId = newUuidV4()
      const leaseUntil = new Date(now.getTime() + 30_000)
      const claim = await rig.store.jobs.claim({ pool: 'main', workerId: 'w', leaseId, leaseUntil, now, ...ANYTHING })
      if (claim !== null) this.#leases.push({ jobId: claim.job.id, leaseId })
    },
    progress: () =>
      this.#withLease((lease) => rig.store.jobs.commit(lease, { outputsReused: this.#random.next() < 0.5 })),
    finish: () =>
      this.#withLease((lease) => {
        const status = this.#random.pick(['succeeded', 'failed', 'canceled'] as const)
        const from = statesBeforeEnd(status)
        const error = status === 'failed' ? toJobError('x', 'x') : null
        return rig.store.jobs.commit(lease, { finish: { status, from, at: clock.now(), error } })
      }),
    renew: () => this.#withLease((lease) => rig.store.jobs.renew([lease], new Date(clock.now().getTime() + 30_000))),
    release: () => this.#withLease((lease) => rig.store.jobs.release([lease], clock.now())),
    cancel: async () => {
      const ids = [...this.#known.keys()]
      if (ids.length > 0) await rig.cancelJob(ACCOUNT, this.#random.pick(ids)).catch(() => {})
    },
    lapse: async () => {
      clock.advance(this.#random.between(1, 40_000))
      await rig.recover()
    },
    expire: async () => {
      if (this.#random.next() < 0.1) clock.advance(RETENTION_MS / 3)
      await rig.expiry.expireLive()
    },
  }

  async #withLease(act: (lease: Lease) => Promise<unknown>): Promise<void> {
    if (this.#leases.length > 0) await act(this.#random.pick(this.#leases))
  }

  /** One to four acts at once, then a look at everything. */
  async step(): Promise<void> {
    const acts = Array.from({ length: this.#random.between(1, 5) }, () => this.#random.pick(Object.values(this.#acts)))
    await Promise.all(acts.map((act) => act()))
    await this.check()
  }

  async check(): Promise<void> {
    const counts: Partial<Record<JobStatus, number>> = {}
    for (const [id, before] of this.#known) {
      const now = await rig.store.jobs.find(ACCOUNT, id, new Date(0))
      assert.ok(now !== null, 'no job vanishes before its time')
      this.#checkMove(before, now)
      this.#known.set(id, now)
      counts[now.status] = (counts[now.status] ?? 0) + 1
    }
    const use = await rig.store.accounts.findUse(ACCOUNT)
    const held = (counts.running ?? 0) + (counts.canceling ?? 0)
    assert.deepEqual(use, { queued: counts.queued ?? 0, running: held })
    assert.ok(held <= 4, 'the account never has more than it may')
    assert.equal(await rig.store.accounts.repairCounters(), 0)
  }

  /** Between two looks a job may have made several moves, so a path must lead from one to the other. */
  #checkMove(before: Job, now: Job): void {
    if (isTerminal(before.status)) assert.deepEqual(now, before, 'an end is an end')
    assert.ok(now.version >= before.version)
    if (now.status !== before.status) {
      assert.ok(now.version > before.version)
      assert.ok(isReachable(before.status, now.status), `${before.status} -> ${now.status}`)
    }
    assert.equal(now.completedAt !== null, isTerminal(now.status))
    assert.ok(now.attempt <= 3)
    assert.equal(now.queuePosition !== null, now.status === 'queued')
  }

  /** Lets every job come to its end and returns how they ended. */
  async end(): Promise<JobStatus[]> {
    for (let round = 0; round < 1000; round++) {
      const live = [...this.#known.values()].filter((job) => !isTerminal(job.status))
      if (live.length === 0) break
      await this.#acts['claim']()
      clock.advance(31_000)
      await rig.recover()
      await this.check()
    }
    return [...this.#known.values()].map((job) => job.status)
  }
}

function isReachable(from: JobStatus, to: JobStatus): boolean {
  const seen = new Set<JobStatus>([from])
  for (const status of seen) {
    for (const next of ['queued', 'running', 'canceling', 'succeeded', 'failed', 'canceled', 'expired'] as const) {
      if (canMove(status, next)) seen.add(next)
    }
  }
  return seen.has(to)
}

for (const seed of SEEDS) {
  test(`history ${seed}: ends stay, counters count, and every job ends once`, async () => {
    const history = new History(seededRandom(seed))
    for (let step = 0; step < STEPS; step++) await history.step()
    const ends = await history.end()
    assert.ok(ends.length > 0 && ends.every(isTerminal))
    // The next history starts from an empty store.
    clock.advance(RETENTION_MS + 7_200_000)
    await rig.expiry.removeOld()
    assert.deepEqual((await rig.listJobs(ACCOUNT, { statuses: null, metadata: {}, limit: 10, cursor: null })).jobs, [])
  })
}
