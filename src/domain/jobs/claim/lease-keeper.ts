/**
 * Keeps the leases of a worker's runs: renews them in one write and tells each run what that write found (a cancel, or that the
 * lease is lost), and gives jobs back to the queue.
 */
import { isStoreAway } from '../../errors.ts'
import type { Lease, ReturnedLease } from '../job-store.ts'
import type { JobRun } from '../run/job-run.ts'
import { announceTouched } from '../sweeps/announce-touched.ts'
import type { WorkerDeps, WorkerOptions } from './worker-options.ts'

type LeasedRun = Pick<JobRun, 'lease' | 'leaseUntil' | 'lose' | 'cancel'>

export class LeaseKeeper {
  readonly #deps: WorkerDeps
  readonly #options: WorkerOptions
  /** Lease ids of claims that failed, each with the moment when its lease runs out. */
  readonly #unanswered = new Map<string, Date>()

  constructor(deps: WorkerDeps, options: WorkerOptions) {
    this.#deps = deps
    this.#options = options
  }

  async renew(runs: readonly LeasedRun[]): Promise<void> {
    const until = new Date(this.#deps.clock.now().getTime() + this.#options.leaseMs)
    const leases = runs.map((run) => run.lease)
    const held = await this.#deps.store.renew(leases, until)
    const statusOf = new Map(held.map(({ jobId, status }) => [jobId, status]))
    for (const run of runs) {
      const status = statusOf.get(run.lease.jobId)
      if (status === undefined) {
        run.lose()
        continue
      }
      run.leaseUntil = until
      if (status === 'canceling') run.cancel()
    }
  }

  /**
   * Never rejects: a run goes on until its lease has run out, and for `outageGraceMs` more while the store is away. Then nobody
   * else can take the job either, and an outage of a minute costs no run; the fence keeps out a result that comes too late.
   */
  async tryToRenew(runs: readonly LeasedRun[]): Promise<void> {
    if (runs.length === 0) return
    try {
      await this.renew(runs)
    } catch (error) {
      const isAway = isStoreAway(error)
      if (!isAway) this.#deps.log.error({ err: error }, 'renewing leases failed')
      const lapsed = this.#deps.clock.now().getTime() - (isAway ? this.#options.outageGraceMs : 0)
      for (const run of runs) if (run.leaseUntil.getTime() <= lapsed) run.lose()
    }
  }

  /** Claims that failed: whether they took a job is not known. */
  noteUnanswered(leaseIds: readonly string[], until: Date): void {
    if (this.#deps.store.findClaim === undefined) return
    for (const leaseId of leaseIds) this.#unanswered.set(leaseId, until)
  }

  /**
   * Gives back what such claims took, with the attempt. A claim may take its job even after it has failed here, so each is looked for
   * until its lease would have run out. Never rejects.
   */
  async returnUnanswered(): Promise<void> {
    const { store, clock, log } = this.#deps
    for (const [leaseId, until] of this.#unanswered) {
      try {
        const claim = await store.findClaim?.(leaseId)
        if (claim) await this.#release([{ jobId: claim.job.id, leaseId }])
        if (claim || until <= clock.now()) this.#unanswered.delete(leaseId)
      } catch (error) {
        log.debug({ err: error }, 'a claim that was not answered could not be looked for')
        return
      }
    }
  }

  /** Gives jobs back to the queue. Never rejects. */
  async giveBack(leases: readonly ReturnedLease[]): Promise<void> {
    if (leases.length === 0) return
    try {
      await this.#release(leases)
    } catch (error) {
      this.#deps.log.error({ err: error }, 'leases could not be given back; they run out by themselves')
    }
  }

  /** Leaves runs to whoever adopts them. Never rejects. */
  async leave(leases: readonly Lease[]): Promise<void> {
    if (leases.length === 0) return
    try {
      await this.#deps.store.leave?.(leases, this.#deps.clock.now())
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'runs could not be left at once; their leases run out by themselves')
    }
  }

  async #release(leases: readonly ReturnedLease[]): Promise<void> {
    const touched = await this.#deps.store.release(leases, this.#deps.clock.now())
    announceTouched({ ...this.#deps, observer: this.#options.observer }, touched, null)
  }
}
