/**
 * For how long an engine gets no work because of how it behaved: a short pause after it broke off a run, which grows while that
 * goes on, and a quarantine for what needs more than patience, which doubles with every further
 * one that was right: a caller may bring one about, and must not make it grow.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { type Backoff, createBackoff } from '../../../../lib/waiting/sleep.ts'

export interface SuspensionOptions {
  readonly clock: Clock
  /** The first pause after it broke off a run; it doubles while that goes on. */
  readonly retryMs: number
  /** The first time in quarantine; it doubles with every further one that is proved. */
  readonly quarantineMs: number
}

interface Quarantine {
  readonly reason: string
  readonly since: number
  readonly until: number
  /** The job whose run it is for; null: no job can take it back. */
  readonly jobId: string | null
  /** It was for a job at first, whether or not that is proved by now. */
  readonly isVerdict: boolean
}

const MAX_RETRY_MS = 30_000
/** Faults of the machine that may as well be those of a job: others wait for it, too. */
const MAX_FAULT_PAUSE_MS = 5_000
const MAX_QUARANTINE_MS = 1_800_000

export class EngineSuspension {
  readonly #clock: Clock
  readonly #retryBackoff: Backoff
  readonly #faultBackoff: Backoff
  readonly #quarantineBackoff: Backoff
  readonly #quarantineMs: number
  #quarantine: Quarantine | null = null
  #pausedUntil = 0
  /** The job that another engine gives a second opinion on meanwhile. */
  #doubtedFor: string | null = null
  #brokeLatestRun = false

  constructor({ clock, retryMs, quarantineMs }: SuspensionOptions) {
    this.#clock = clock
    this.#quarantineMs = quarantineMs
    this.#retryBackoff = createBackoff({ firstMs: retryMs, maxMs: MAX_RETRY_MS })
    this.#faultBackoff = createBackoff({ firstMs: retryMs, maxMs: MAX_FAULT_PAUSE_MS })
    this.#quarantineBackoff = createBackoff({ firstMs: quarantineMs, maxMs: MAX_QUARANTINE_MS, random: () => 1 })
  }

  get brokeLatestRun(): boolean {
    return this.#brokeLatestRun || this.trialReason() !== null
  }

  /** Its quarantine is over, and no run has succeeded since: it is tried with one at a time. null: it is trusted, or in quarantine. */
  trialReason(): string | null {
    return this.#quarantine !== null && this.#quarantine.until <= this.#now() ? this.#quarantine.reason : null
  }

  /** How long it gets no work; 0: it may have some now. */
  pausedMs(): number {
    return Math.max(0, Math.max(this.#pausedUntil, this.#quarantine?.until ?? 0) - this.#now())
  }

  /** null: it is not in quarantine. */
  quarantineReason(): string | null {
    return this.#quarantine !== null && this.#quarantine.until > this.#now() ? this.#quarantine.reason : null
  }

  /** It is in quarantine because of how its runs went, not because it does not work at all. */
  get restsByVerdict(): boolean {
    return this.#quarantine?.isVerdict === true && this.quarantineReason() !== null
  }

  /** A run was broken off. `isPast`: by a process that is gone, for which the present one is not paused. */
  noteLoss({ isPast }: { readonly isPast: boolean }): void {
    // Also when the new process was noticed before the loss: the job goes to another engine where there is one.
    this.#brokeLatestRun = true
    this.#doubtedFor = null
    if (!isPast) this.#pausedUntil = this.#now() + this.#retryBackoff.nextMs()
  }

  /** A run failed, perhaps because of it. */
  noteFault(): void {
    this.#brokeLatestRun = true
    this.#doubtedFor = null
    this.#pausedUntil = this.#now() + this.#faultBackoff.nextMs()
  }

  /** The same, and another engine is asked whether it was: until that is known, this one should not meet the job again. */
  noteDoubt(jobId: string): void {
    this.noteFault()
    this.#doubtedFor = jobId
  }

  noteGoodRun(): void {
    this.#brokeLatestRun = false
    this.#doubtedFor = null
    this.#faultBackoff.reset()
    this.#retryBackoff.reset()
  }

  /** A run succeeded: what went wrong before has passed. */
  noteSuccess(): void {
    if (this.trialReason() === null) return
    this.#quarantine = null
    this.#quarantineBackoff.reset()
  }

  /** For a job it has the shortest time, until that is confirmed. */
  quarantine(reason: string, jobId: string | null = null): void {
    const since = this.#now()
    const ms = jobId === null ? this.#quarantineBackoff.nextMs() : this.#quarantineMs
    this.#quarantine = { reason, since, until: since + ms, jobId, isVerdict: jobId !== null }
  }

  /** What it was put in quarantine for was not the job's fault. */
  confirm(jobId: string): void {
    const quarantine = this.#quarantine
    if (quarantine?.jobId !== jobId) return
    const until = Math.max(quarantine.until, quarantine.since + this.#quarantineBackoff.nextMs())
    this.#quarantine = { ...quarantine, until, jobId: null }
  }

  /** Whose fault it was will not be known: it is on trial at once. */
  shorten(jobId: string): void {
    if (this.#doubtedFor === jobId) this.#pausedUntil = 0
    const quarantine = this.#quarantine
    if (quarantine?.jobId === jobId)
      this.#quarantine = { ...quarantine, until: Math.min(quarantine.until, this.#now()) }
  }

  /** It is on trial at once, if nobody has proved yet what it rests for. */
  tryIfUnproved(): void {
    const jobId = this.#quarantine?.jobId ?? null
    if (jobId !== null) this.shorten(jobId)
  }

  /** What it was put in quarantine or in doubt for was the job's own fault. */
  acquit(jobId: string): void {
    if (this.#doubtedFor === jobId) {
      this.#pausedUntil = 0
      this.noteGoodRun()
    }
    if (this.#quarantine?.jobId === jobId) this.lift()
  }

  /** Another process is there: it may have work at once, but the next quarantine is still the longer one. */
  startAnew(): void {
    this.#quarantine = null
    this.#doubtedFor = null
    this.#pausedUntil = 0
  }

  /** The operator trusts it again: nothing that happened counts any more. */
  lift(): void {
    this.startAnew()
    this.noteGoodRun()
    this.#quarantineBackoff.reset()
  }

  #now(): number {
    return this.#clock.now().getTime()
  }
}
