/**
 * Claims of one pool. The worker asks often and must have its answer at once; so one claim is left waiting at the service in its
 * place, and what that one brings is kept for the worker's next question, which is then rung for. It waits with the engines that
 * were offered last: when those change it is taken back, together with whatever it may just have been given.
 */
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { createBackoff, sleep } from '../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../../domain/errors.ts'
import type { Claim, ClaimRequest } from '../../domain/jobs/job-store.ts'

interface AskOptions {
  readonly leaseId: string
  readonly waitMs: number
  readonly signal?: AbortSignal
}

interface ScoutDeps {
  /** Asks the service; null: there was no work within the time. */
  ask(request: ClaimRequest, options: AskOptions): Promise<Claim | null>
  /** Gives back what a lease holds, if it holds anything. Never rejects. */
  giveBack(leaseId: string): Promise<void>
  /** What the engines look like that are offered; the same text means the same offers. */
  signatureOf(request: ClaimRequest): string
  /** Work was brought. */
  ring(): void
  readonly maxWaitMs: number
  readonly log: Log
}

interface Parked {
  readonly signature: string
  readonly stop: AbortController
  readonly over: Promise<void>
}

// The worker comes for it within milliseconds, unless its engines were taken by another pool meanwhile.
const KEEP_MS = 1000

export class ClaimScout {
  readonly #deps: ScoutDeps
  #parked: Parked | null = null
  /** Of a question that is being taken back. */
  #canceled: Promise<void> = Promise.resolve()
  #brought: { readonly claim: Claim; readonly timer: NodeJS.Timeout } | null = null
  /** Of a claim whose answer was lost: asked again, it finds its job. */
  #unsure: string | null = null
  /** Of the question that is under way, or was the last one. */
  #asking: Promise<unknown> = Promise.resolve()
  #isOver = false

  constructor(deps: ScoutDeps) {
    this.#deps = deps
  }

  async claim(request: ClaimRequest): Promise<Claim | null> {
    const signature = this.#deps.signatureOf(request)
    if (this.#parked !== null && this.#parked.signature !== signature) this.#cancel()
    await this.#canceled
    const brought = await this.#forOffered(this.#takeBrought(), request)
    if (brought !== null) return brought
    if (this.#isOver || this.#parked !== null) return null
    const asking = this.#askNow(request)
    this.#asking = asking.catch(() => {})
    const claim = await this.#forOffered(await asking, request)
    if (claim === null && !this.#isOver) this.#park(signature, request)
    return claim
  }

  async #askNow(request: ClaimRequest): Promise<Claim | null> {
    const leaseId = this.#unsure ?? newUuidV4()
    this.#unsure = leaseId
    const claim = await this.#deps.ask(request, { leaseId, waitMs: 0 })
    this.#unsure = null
    return claim
  }

  /** A job may have been given to an engine that is not offered any more. */
  async #forOffered(claim: Claim | null, { engines }: ClaimRequest): Promise<Claim | null> {
    if (claim === null || engines.some(({ engineId }) => engineId === claim.engineId)) return claim
    await this.#deps.giveBack(claim.leaseId)
    return null
  }

  /** Takes back what waits with other engines than these; left out: with any. */
  cancel(unless?: string): void {
    if (this.#parked !== null && this.#parked.signature !== unless) this.#cancel()
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#cancel()
    await this.#canceled
    await this.#asking
    const brought = this.#takeBrought()
    if (brought !== null) await this.#deps.giveBack(brought.leaseId)
    if (this.#unsure !== null) await this.#deps.giveBack(this.#unsure)
  }

  #cancel(): void {
    const parked = this.#parked
    if (parked === null) return
    this.#parked = null
    parked.stop.abort()
    this.#canceled = parked.over
  }

  #park(signature: string, request: ClaimRequest): void {
    const stop = new AbortController()
    this.#parked = { signature, stop, over: this.#wait(request, stop.signal) }
  }

  async #wait(request: ClaimRequest, signal: AbortSignal): Promise<void> {
    const backoff = createBackoff({ firstMs: 250, maxMs: 10_000 })
    let leaseId = newUuidV4()
    while (!signal.aborted) {
      try {
        const claim = await this.#deps.ask(request, { leaseId, waitMs: this.#deps.maxWaitMs, signal })
        backoff.reset()
        if (claim === null) {
          leaseId = newUuidV4()
          continue
        }
        if (signal.aborted) await this.#deps.giveBack(leaseId)
        else this.#bring(claim)
        return
      } catch (error) {
        // The service may have answered in the very moment in which the question was taken back.
        if (signal.aborted) return await this.#deps.giveBack(leaseId)
        if (!isStoreAway(error)) this.#deps.log.warn({ err: error }, 'asking for work failed')
        await sleep(backoff.nextMs(), signal)
        // Nobody asks again: what the lost answer may have brought is given back.
        if (signal.aborted) return await this.#deps.giveBack(leaseId)
      }
    }
  }

  #bring(claim: Claim): void {
    this.#parked = null
    const timer = setTimeout(() => {
      if (this.#takeBrought() !== null) void this.#deps.giveBack(claim.leaseId)
    }, KEEP_MS)
    this.#brought = { claim, timer }
    this.#deps.ring()
  }

  #takeBrought(): Claim | null {
    const brought = this.#brought
    this.#brought = null
    if (brought === null) return null
    clearTimeout(brought.timer)
    return brought.claim
  }
}
