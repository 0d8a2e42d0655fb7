/**
 * Claims jobs for engines that have a free slot and runs them there. It is woken by notices and also polls, so a lost notice costs
 * a second. All its leases are renewed in one write; a run that loses its lease is discarded. Which job is next, for which of the
 * engines, and whether its account may run one more, is decided by the store; the run itself is in job-run.ts.
 */
import { uptimeMs } from '../../../../lib/clock.ts'
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { type Backoff, createBackoff, createDoorbell, settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'
import { createTurns } from '../../../../lib/waiting/turns.ts'
import type { EngineSlot } from '../../engine/fleet/engine-slot.ts'
import { isStoreAway } from '../../errors.ts'
import type { JobChanged } from '../../events/event-bus.ts'
import type { Claim } from '../job-store.ts'
import { JobRun } from '../run/job-run.ts'
import { createNodeTimes } from '../run/node-times.ts'
import type { RunDeps } from '../run/run-deps.ts'
import { RunTrace } from '../run/run-trace.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { readWorkerOptions, type WorkerDeps, type WorkerOptions } from './worker-options.ts'

interface WorkerStats {
  readonly workers: number
  readonly running: number
  readonly isDraining: boolean
}

export interface Worker extends AsyncDisposable {
  /** Harmless when called twice. */
  start(): void
  /**
   * Claims nothing more, lets runs finish until the deadline, then leaves those that their engines go on with to whoever comes next, and
   * gives the rest back to the queue.
   */
  drain(options: { readonly deadline: Date }): Promise<void>
  /** Takes the runs from one engine and gives their jobs back to the queue, without spending an attempt. */
  evict(engineId: string): Promise<void>
  stats(): WorkerStats
  readonly pool: string
  /** Whether it may begin one more run, as far as that depends on its own number of runs. */
  hasRoom(): boolean
  /** Those that engines compute now. */
  computing(): readonly JobRun[]
  /** Ends a run so that others have their turn: its job goes behind all that wait of its account, without spending an attempt. */
  giveWay(run: JobRun): Promise<void>
  /** Looks for work at once: some may be on its way to the store. */
  look(): void
}

export function createWorker(deps: WorkerDeps): Worker {
  return new ClaimingWorker(deps)
}

/** How often runs are looked for that nobody follows, on engines that keep them. */
const ADOPT_EVERY_MS = 5_000
// A full worker waits for a slot to be freed; the time only bounds the wait.
const FULL_WAIT_MS = 60_000
const MAX_STORAGE_PAUSE_MS = 30_000
const MAX_CLAIMS_AT_ONCE = 32
/** So many claims behind all others comes the account of a run that gave way. */
const SPENT_TURNS = 65
/** How many ends may be under way at a time, beside the runs that engines compute: they hold outputs in memory. */
const MAX_COMPUTED = 64

class ClaimingWorker implements Worker {
  readonly #deps: WorkerDeps
  readonly #options: WorkerOptions
  readonly #runDeps: RunDeps
  readonly #leases: LeaseKeeper
  readonly #runs = new Map<string, JobRun>()
  /** Runs, each together with the repair of its engine where one follows. */
  readonly #busy = new Set<Promise<void>>()
  /** How many of those that are busy their engines have computed, so that only their ends are still to be written. */
  #computed = 0
  readonly #bell = createDoorbell()
  readonly #closing = new AbortController()
  readonly #drainOver = new AbortController()
  /** After the storage had no room for outputs: the next job would fare no better just now. */
  readonly #storageBackoff: Backoff
  readonly #storeBackoff = createBackoff({ firstMs: 250, maxMs: 10_000 })
  #loops: Promise<void>[] = []
  #subscriptions: (() => void)[] = []
  #pauseMs = 0
  /** Jobs that were claimed since a claim last found nothing. */
  #takenInRow = 0
  #drained: Promise<void> | null = null
  /** The engines on which runs were last looked for that nobody follows, and when. */
  #lookedFor: { readonly engines: string; readonly atMs: number } | null = null

  constructor(deps: WorkerDeps) {
    this.#deps = deps
    this.#options = readWorkerOptions(deps)
    const { limits, pace, observer, parallelIngests, storageRetryMs, outageGraceMs } = this.#options
    this.#storageBackoff = createBackoff({ firstMs: storageRetryMs, maxMs: MAX_STORAGE_PAUSE_MS })
    this.#leases = new LeaseKeeper(deps, this.#options)
    this.#runDeps = {
      ...deps,
      observer,
      limits,
      pace,
      outageGraceMs,
      outputRules: { previewOutputs: deps.previewOutputs ?? false },
      ingestLimit: createSemaphore(parallelIngests),
      turns: deps.turns ?? createTurns(),
      nodeTimes: createNodeTimes(),
      checkLease: ({ jobId }) => this.#leases.renew([this.#runs.get(jobId)].filter((run) => run !== undefined)),
      giveBack: (lease) => {
        this.#runs.delete(lease.jobId)
        return this.#leases.giveBack([lease])
      },
    }
  }

  start(): void {
    if (this.#loops.length > 0 || this.#closing.signal.aborted) return
    const { bus, fleet } = this.#deps
    this.#subscriptions = [
      bus.onWork(() => this.#bell.ring()),
      bus.onChanged((notice) => this.#onChanged(notice)),
      bus.onGap(() => this.#onGap()),
      fleet.onChange(() => this.#bell.ring()),
    ]
    this.#loops = [this.#claimLoop(), this.#renewLoop()]
  }

  stats(): WorkerStats {
    return {
      workers: this.#options.workers,
      running: this.#runs.size,
      isDraining: this.#closing.signal.aborted,
    }
  }

  get pool(): string {
    return this.#options.pool
  }

  hasRoom(): boolean {
    return this.#room() > 0
  }

  computing(): readonly JobRun[] {
    return [...this.#runs.values()].filter((run) => run.isComputing)
  }

  async giveWay(run: JobRun): Promise<void> {
    run.abandon()
    await this.#leases.giveBack([{ ...run.toReturn(), spentTurns: SPENT_TURNS }])
    await run.done
  }

  look(): void {
    this.#bell.ring()
  }

  drain({ deadline }: { readonly deadline: Date }): Promise<void> {
    this.#drained ??= this.#drain(deadline)
    return this.#drained
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain({ deadline: this.#deps.clock.now() })
  }

  async #claimLoop(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      // Before anything new is claimed, and whatever room there is: those runs go on already.
      await this.#adoptRuns()
      if (this.#room() <= 0) {
        await this.#bell.wait(this.#untilNextLook(FULL_WAIT_MS), signal)
        continue
      }
      if (this.#pauseMs > 0) {
        const pauseMs = this.#pauseMs
        this.#pauseMs = 0
        await sleep(pauseMs, signal)
        continue
      }
      const { fleet } = this.#deps
      this.#bell.forget()
      await this.#leases.returnUnanswered()
      const isClaimed = await fleet.claimExclusively(this, () => this.#claimSome())
      // A paused engine may take work again as soon as its pause is over.
      if (isClaimed) continue
      await this.#bell.wait(this.#untilNextLook(Math.min(fleet.nextRoomMs() ?? FULL_WAIT_MS, this.#pollMs())), signal)
    }
  }

  /** The wait of a worker that has nothing else to do. */
  #untilNextLook(waitMs: number): number {
    if (this.#deps.store.adopt === undefined || this.#deps.fleet.adoptable().length === 0) return waitMs
    return Math.min(waitMs, ADOPT_EVERY_MS)
  }

  /** Takes on the runs that engines of this process have and nobody follows: those of a process that is gone, or that left them. */
  async #adoptRuns(): Promise<void> {
    const { fleet, store, clock, log } = this.#deps
    const engineIds = store.adopt === undefined ? [] : fleet.adoptable()
    const engines = engineIds.join(' ')
    if (engines === '') this.#lookedFor = null
    else if (this.#lookedFor?.engines !== engines || uptimeMs() - this.#lookedFor.atMs >= ADOPT_EVERY_MS) {
      try {
        while (!this.#closing.signal.aborted) {
          const now = clock.now()
          const leaseUntil = new Date(now.getTime() + this.#options.leaseMs)
          const { pool, workerId } = this.#options
          const asked = { pool, workerId, leaseId: this.#deps.newId(), leaseUntil, now, engineIds }
          const claim = (await store.adopt?.(asked)) ?? null
          if (claim === null) break
          await this.#takeOn(claim, leaseUntil)
        }
        this.#lookedFor = { engines, atMs: uptimeMs() }
      } catch (error) {
        log.debug({ err: error }, 'runs that nobody follows could not be looked for')
      }
    }
  }

  async #takeOn(claim: Claim, leaseUntil: Date): Promise<void> {
    const { log } = this.#deps
    const { job, engineId } = claim
    if (this.#closing.signal.aborted) {
      await this.#leases.leave([{ jobId: job.id, leaseId: claim.leaseId }])
      return
    }
    // The lease ran out while the run went on here: two must not listen to the same prompt.
    const before = this.#runs.get(job.id)
    before?.lose()
    if (before !== undefined) await settlesWithin(before.done, this.#options.limits.cancelGraceMs)
    log.info({ jobId: job.id, engine: engineId, attempt: job.attempt }, 'a run is taken on that nobody followed')
    this.#begin(claim, leaseUntil)
  }

  /** How many more runs may begin. */
  #room(): number {
    return this.#options.workers - this.#busy.size + Math.min(this.#computed, MAX_COMPUTED)
  }

  /** Between one and two poll intervals, so that many workers do not ask in step. */
  #pollMs(): number {
    const { isWoken, wokenPollEveryMs, pollEveryMs } = this.#options
    return (isWoken() ? wokenPollEveryMs : pollEveryMs) * (1 + Math.random())
  }

  /**
   * One claim, or as many at the same moment as were lately followed by a job where engines do not count their slots. False: there is
   * nothing more to claim now.
   */
  async #claimSome(): Promise<boolean> {
    const { fleet, clock, store } = this.#deps
    const engines = fleet.offers(this.#options.pool)
    if (engines.length === 0) return false
    // A slot that is taken changes what is offered for the next one.
    const hasSlots = engines.some(({ lanes }) => lanes !== null)
    const count = hasSlots ? 1 : Math.max(1, Math.min(this.#room(), this.#takenInRow, MAX_CLAIMS_AT_ONCE))
    const now = clock.now()
    const leaseUntil = new Date(now.getTime() + this.#options.leaseMs)
    const leaseIds = Array.from({ length: count }, () => this.#deps.newId())
    const { pool, workerId, maxOvertakes, creditMs } = this.#options
    const moment = { now, leaseUntil, pool, workerId, maxOvertakes, creditMs }
    const claims = await Promise.allSettled(leaseIds.map((leaseId) => store.claim({ ...moment, leaseId, engines })))
    const taken = claims.flatMap((claim) => (claim.status === 'fulfilled' && claim.value !== null ? [claim.value] : []))
    const failed = claims.find((claim) => claim.status === 'rejected')
    if (failed === undefined) this.#storeBackoff.reset()
    else this.#pauseAfter(failed.reason)
    this.#leases.noteUnanswered(
      leaseIds.filter((_, index) => claims[index]?.status === 'rejected'),
      leaseUntil,
    )
    for (const claim of taken) {
      if (this.#closing.signal.aborted) await this.#leases.giveBack([{ jobId: claim.job.id, leaseId: claim.leaseId }])
      else this.#begin(claim, leaseUntil)
    }
    const wasEnough = taken.length === count
    this.#takenInRow = wasEnough ? this.#takenInRow + taken.length : 0
    return wasEnough || failed !== undefined
  }

  #pauseAfter(error: unknown): void {
    const { log } = this.#deps
    if (isStoreAway(error)) log.debug({ err: error }, 'no job can be claimed while the store is away')
    else log.error({ err: error }, 'claiming a job failed')
    this.#pauseMs = this.#storeBackoff.nextMs()
  }

  #begin(claim: Claim, leaseUntil: Date): void {
    const { tracer, clock, fleet, bus } = this.#deps
    const { job } = claim
    const slot = fleet.take(claim.engineId, { jobId: job.id, lane: claim.needs })
    let isComputed = false
    const onComputed = () => {
      if (isComputed) return
      isComputed = true
      this.#computed++
      slot.vacate()
      this.#bell.ring()
    }
    const trace = tracer === undefined ? null : new RunTrace(claim, { tracer, clock })
    const start = () => new JobRun(claim, { slot, onComputed }, { ...this.#runDeps, leaseUntil, trace })
    const run = trace?.within(start) ?? start()
    this.#runs.set(job.id, run)
    const occupied = this.#occupy(run, slot).finally(() => {
      this.#busy.delete(occupied)
      if (isComputed) this.#computed--
      this.#bell.ring()
    })
    this.#busy.add(occupied)
    if (job.status === 'canceling') run.cancel()
    // Nobody sees that another process follows it now.
    if (claim.runId !== undefined) return
    const startedAtMs = (job.startedAt ?? clock.now()).getTime()
    this.#options.observer.started({ job, queueMs: Math.max(0, startedAtMs - job.createdAt.getTime()) })
    this.#runDeps.onStored?.(job)
    bus.publishChanged?.({ jobId: job.id, accountId: job.accountId, version: job.version, move: 'taken' })
  }

  /** The slot stays taken while its engine is repaired: the next run must not meet one that hangs. */
  async #occupy(run: JobRun, slot: EngineSlot): Promise<void> {
    const end = await run.done
    const { jobId } = run.lease
    if (this.#runs.get(jobId) === run) this.#runs.delete(jobId)
    if (end.isShortOfRoom) this.#pauseMs = this.#storageBackoff.nextMs()
    else if (end.end === 'finished') this.#storageBackoff.reset()
    if (end.isStuck) {
      this.#options.observer.engineStuck({ jobId })
      this.#deps.log.error({ jobId, engine: slot.engineId }, 'the engine was given up in the middle of a run')
    }
    await slot.end(end)
  }

  /** Somebody else changed a job that runs here: a cancel, or an end such as its retention. The lease tells which. */
  #onChanged({ jobId, version, move }: JobChanged): void {
    if (move === 'dropped') this.#deps.fleet.forget(jobId)
    const run = this.#runs.get(jobId)
    if (run === undefined || version <= run.version) return
    this.#leases
      .renew([run])
      .catch((error) => this.#deps.log.warn({ err: error, jobId }, 'a lease could not be checked'))
  }

  /** A cancel, or work, may have been announced without being heard. */
  #onGap(): void {
    this.#bell.ring()
    void this.#leases.tryToRenew([...this.#runs.values()])
  }

  async #renewLoop(): Promise<void> {
    const { signal } = this.#closing
    // Leases are kept alive while the worker drains, too: the loop ends with the last run.
    while (!signal.aborted || this.#busy.size > 0) {
      await sleep(this.#options.renewEveryMs, this.#drainOver.signal)
      if (this.#drainOver.signal.aborted) return
      await this.#leases.tryToRenew([...this.#runs.values()])
      await this.#leases.returnUnanswered()
    }
  }

  async #drain(deadline: Date): Promise<void> {
    this.#closing.abort()
    const [claimLoop, renewLoop] = this.#loops
    await claimLoop
    await this.#leases.returnUnanswered()
    const slots = Promise.all(this.#busy)
    if (!(await settlesWithin(slots, deadline.getTime() - this.#deps.clock.now().getTime()))) {
      const left = this.#deps.store.leave === undefined ? [] : [...this.#runs.values()].filter((run) => run.leave())
      const runs = [...this.#runs.values()].filter((run) => !left.includes(run))
      for (const run of runs) run.abandon()
      await this.#leases.giveBack(runs.map((run) => run.toReturn()))
      await settlesWithin(slots, this.#options.limits.cancelGraceMs)
      await this.#leases.leave(left.map((run) => run.lease))
    }
    this.#drainOver.abort()
    await renewLoop
    for (const end of this.#subscriptions) end()
  }

  async evict(engineId: string): Promise<void> {
    const runs = [...this.#runs.values()].filter((run) => run.claim.engineId === engineId)
    for (const run of runs) run.abandon()
    await this.#leases.giveBack(runs.map((run) => run.toReturn()))
  }
}
