/**
 * The calls under way in this process: found by their id, waited for by whoever wants their end, and waited for when the
 * service stops; and the journal of those that may have left.
 */
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import { settlesWithin } from '../../../../lib/waiting/sleep.ts'
import type { Alternate, Model } from '../catalog/model.ts'
import type { Quote } from '../pricing/pricing.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'
import type { Served } from './call-plan.ts'
import type { CallEnd, CallResult, HeldCall, UnfinishedCall } from './call-store.ts'
import type { ToldTask } from './told-task.ts'

/** Where events go while they come. */
export interface EventRelay {
  /** Once, before the first bytes. */
  begin(contentType: string, served: Served | null): void
  write(bytes: Uint8Array): void
}

/** The request that waits for the end of a call. */
export interface Listener {
  /** Whether the answer would still reach somebody. */
  isConnected(): boolean
  /** Aborted when the waiting request is gone and another one may wait instead; left out: only the deadline ends the wait. */
  readonly left?: AbortSignal
  /** Takes an answer that comes as events while it comes; left out: it is waited for as a whole. */
  readonly relay?: EventRelay
}

const NOBODY: Listener = { isConnected: () => false }

/** For requests that wait for a call with a key: another node continues it, and the key finds it there. */
export class TakenElsewhere extends Error {
  override readonly name = 'TakenElsewhere'
}

interface LiveCallOptions {
  readonly hasWaiter: boolean
  readonly isCollectable: boolean
  /** Whether its caller can ask for it again; without a key every retry is a call of its own. */
  readonly isKeyed: boolean
}

const CHARGED = 'it goes on, and is charged once if it ends well'
/** By then the other process knows more. */
const MOVED_FOR_SECONDS = 1
const LOST =
  'it was sent without an Idempotency-Key, so its result cannot be had any more, and sending it again would be a second call with a price of its own'

/**
 * A call under way, as whoever waits for its end sees it. The call itself goes on whether or not anybody waits. At most one
 * request waits at a time; when that one gave up (its deadline passed, the service restarted), the next request with the same
 * key may wait instead.
 */
export class LiveCall {
  readonly ref: HeldCall
  readonly model: Model
  readonly #isKeyed: boolean
  /** Whether another process could collect it: its handle is stored. */
  isCollectable: boolean
  /** When it is looked at next, for `Retry-After`. */
  pollAfterMs = 1000
  /** The caller that submitted it has cancelled it. */
  isAskedToStop = false
  /** Its end is being written: whether this node still has the call is for that write to say. */
  isConcluding = false
  /** Another node has it: nothing more may be sent or written. */
  isLost = false
  /** What the provider answered to the submit, where the caller follows the task itself. */
  #told: ToldTask | null = null
  #hurry: () => void = () => {}
  #listener: Listener = NOBODY
  #hasWaiter: boolean
  #settle: ((outcome: CallEnd | RouterError | TakenElsewhere) => void) | null = null
  #outcome: CallEnd | RouterError | null = null
  // Not shared: the listeners of one signal for all calls would keep every call that ended, and all it holds, in memory.
  readonly #ending = new AbortController()

  constructor(ref: HeldCall, model: Model, { hasWaiter, isCollectable, isKeyed }: LiveCallOptions) {
    this.ref = ref
    this.model = model
    this.#isKeyed = isKeyed
    this.#hasWaiter = hasWaiter
    this.isCollectable = isCollectable
  }

  /** Aborted when what is asked of the provider must end at once. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  interrupt(reason?: unknown): void {
    this.#ending.abort(reason)
  }

  get isAwaited(): boolean {
    return this.#hasWaiter && this.#listener.isConnected()
  }

  /** Of whoever waits now. */
  get relay(): EventRelay | null {
    return this.#listener.relay ?? null
  }

  /** False while a request holds on to it. */
  get canBeTakenUp(): boolean {
    return !this.#hasWaiter
  }

  /** Integer seconds, at least one. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil(this.pollAfterMs / 1000))
  }

  /** Resolves with the end; rejects when it cannot be had in time, or not at all. */
  wait(listener: Listener, deadlineMs: number): Promise<CallEnd> {
    this.#listener = listener
    this.#hasWaiter = true
    return new Promise((resolve, reject) => {
      const leave = () => this.#letGo(new RouterError('disconnected', 'the caller of this call has disconnected'))
      const timer = setTimeout(() => this.#letGo(this.#toLate()), deadlineMs)
      listener.left?.addEventListener('abort', leave)
      const settle = (outcome: CallEnd | RouterError | TakenElsewhere) => {
        clearTimeout(timer)
        listener.left?.removeEventListener('abort', leave)
        this.#settle = null
        if (outcome instanceof Error) reject(outcome)
        else resolve(outcome)
      }
      this.#settle = settle
      if (this.#outcome !== null) settle(this.#outcome)
      // Whoever left while the call was admitted is told nothing more, and must not keep the next request from waiting.
      else if (listener.left?.aborted) leave()
    })
  }

  /** The end, for present and later waiters. */
  end(outcome: CallEnd | RouterError): void {
    this.#outcome = outcome
    this.#settle?.(outcome)
    this.#listener = NOBODY
  }

  get told(): ToldTask | null {
    return this.#told
  }

  /** The provider has taken the call: whoever waits follows the task itself. The call goes on. */
  accept(told: ToldTask): void {
    this.#told = told
    this.#hasWaiter = false
    this.#listener = NOBODY
    this.#settle?.({ kind: 'result', result: toToldResult(told) })
  }

  /** Until then, or until somebody knows that the task has ended. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        this.signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.signal.addEventListener('abort', end)
      this.#hurry = end
      if (this.signal.aborted) end()
    })
  }

  hurry(): void {
    this.#hurry()
  }

  askToStop(): void {
    this.isAskedToStop = true
  }

  /** Ends the waiting of the request, for now: the call goes on, and the next request with its key may wait again. */
  discourage(refusal: RouterRefusal, reason: string): void {
    this.#letGo(this.#toLeft(refusal, reason, { retryAfterSeconds: null }))
  }

  /** The same, finally: this process no longer drives the call. */
  abandon(refusal: RouterRefusal, reason: string, retryAfterSeconds: number): void {
    this.end(this.#toLeft(refusal, reason, { retryAfterSeconds }))
  }

  /**
   * Another node has taken the call over. What this one has asked of the provider goes on, because its answer may still reach
   * whoever waits; a call that was only polled is asked for by the other node from now on.
   */
  lose(): void {
    if (this.isConcluding) return
    this.isLost = true
    if (this.isCollectable) this.leaveElsewhere()
  }

  /** This process no longer drives the call; another node does. */
  leaveElsewhere(): void {
    if (this.#isKeyed) this.#letGo(new TakenElsewhere('another node goes on with this call'))
    else this.abandon('unavailable', 'another process of the service took the call over', MOVED_FOR_SECONDS)
  }

  #letGo(error: RouterError | TakenElsewhere): void {
    this.#hasWaiter = false
    this.#listener = NOBODY
    this.#settle?.(error)
  }

  #toLate(): RouterError {
    // Only a stored handle makes a promise that outlives this process.
    const retryAfterSeconds = this.isCollectable ? this.retryAfterSeconds : null
    return this.#toLeft('deadline', 'the call took longer than this service holds a connection', { retryAfterSeconds })
  }

  /** The refusal of a caller whose call goes on: what it costs, and whether the result can be collected later. */
  #toLeft(refusal: RouterRefusal, reason: string, options: { readonly retryAfterSeconds: number | null }): RouterError {
    if (!this.#isKeyed) return new RouterError(refusal, `${reason}: ${CHARGED}; ${LOST}`, { goesOn: true })
    const again = this.isCollectable
      ? 'the same Idempotency-Key collects its result and pays nothing more'
      : 'the same Idempotency-Key tells how it ended, as far as that is known, and pays nothing more'
    return new RouterError(refusal, `${reason}: ${CHARGED}; ${again}`, options)
  }
}

/** The answer to a submit. It costs nothing: the end of the task does. */
export function toToldResult({ answer }: ToldTask): CallResult {
  const bytes = Buffer.from(answer)
  return {
    contentType: 'application/json',
    body: { kind: 'inline', bytes },
    sizeBytes: bytes.length,
    costMicros: null,
  }
}

interface ServingModel {
  readonly model: Model
  /** null: the answer stays as it is. */
  readonly alternate: Alternate | null
  readonly served: Served | null
}

/** The model that is called for it. */
export function servingModelOf({ live, serving }: Pick<DrivenCall, 'live' | 'serving'>): Model {
  return serving?.model ?? live.model
}

/** What is known of a call that was admitted. */
export interface DrivenCall {
  readonly live: LiveCall
  readonly baseUrl: string
  readonly isKeyed: boolean
  readonly isQueued: boolean
  readonly isOwnKey: boolean
  readonly quote: Quote
  /** At an attempt of a plan: the model that is called, and how its answer becomes one of the model that was asked for. */
  readonly serving?: ServingModel
  /** The trace that it continues; left out or null: that of whoever waits for it, if any. */
  readonly trace?: TraceContext | null
}

export interface LiveCalls {
  find(callId: string): LiveCall | null
  /** All that are under way now. */
  list(): LiveCall[]
  /** Until `work` has ended; `work` never rejects for what a provider does. */
  track(call: LiveCall, work: Promise<void>): void
  readonly size: number
  /** Resolves when all calls that are under way now have ended. */
  untilEnded(): Promise<void>
  /** True once the service stops: no new call is admitted, and those under way may be left to the next process. */
  readonly isClosing: boolean
  /** Throws once the service stops. */
  refuseWhenClosing(): void
  /** No new calls; those under way may end within `withinMs`, then the rest is left to the next process. */
  close(withinMs: number): Promise<void>
  /** Aborted when calls under way must be left to the next process. */
  readonly stopping: AbortSignal
  /** Called whenever a call has ended: there may be room for another. */
  onEnded(listener: (accountId: string) => void): void
}

/**
 * Emptied when the call has ended. A Map that grows and shrinks all the time leaves old copies of its table behind, which keep
 * their entries alive until the next full garbage collection. An emptied entry keeps nothing else alive.
 */
interface Entry {
  call: LiveCall | null
  work: Promise<void> | null
}

export function createLiveCalls(onDefect: (error: unknown, callId: string) => void): LiveCalls {
  const calls = new Map<string, Entry>()
  const ending = new AbortController()
  let isClosing = false
  let tellEnded: (accountId: string) => void = () => {}

  function track(call: LiveCall, work: Promise<void>): void {
    const { id, accountId } = call.ref
    const entry: Entry = { call, work: null }
    // This node lost the call, takes it again, and has not ended its first work on it yet.
    const former = calls.get(id)?.work ?? null
    const leave = () => {
      entry.call = null
      entry.work = null
      if (calls.get(id) === entry) calls.delete(id)
      tellEnded(accountId)
    }
    const ended = work.then(leave, (error: unknown) => {
      onDefect(error, id)
      call.end(new RouterError('internal', 'the call failed on our side; the request id helps to find out why'))
      leave()
    })
    entry.work = former === null ? ended : Promise.all([former, ended]).then(() => {})
    calls.set(id, entry)
  }

  const all = () => Promise.all([...calls.values()].map(({ work }) => work))

  return {
    find: (callId) => calls.get(callId)?.call ?? null,
    list: () => [...calls.values()].map(({ call }) => call).filter((call) => call !== null),
    track,
    get size() {
      return calls.size
    },
    get isClosing() {
      return isClosing
    },
    refuseWhenClosing() {
      if (!isClosing) return
      throw new RouterError('unavailable', 'the service is stopping; try again in a moment', { retryAfterSeconds: 5 })
    },
    untilEnded: async () => void (await all()),
    async close(withinMs) {
      isClosing = true
      await settlesWithin(all(), withinMs)
      ending.abort()
      for (const { call } of calls.values()) call?.interrupt(ending.signal.reason)
      await all()
    },
    stopping: ending.signal,
    onEnded(listener) {
      tellEnded = listener
    },
  }
}

// Which calls may have reached their provider. A call is admitted some time before its first byte leaves: it waits for a free
// slot, its media are fetched, a busy provider is waited for. A process that dies in that time has made nothing. Only an entry
// that is written before the first byte, and outlives the process, tells such a call from one whose answer was lost.

export interface SentJournal {
  /**
   * Done when the entry outlives this process. Throws when it cannot be written, or when the journal knows that the call is not
   * this node's any more: then nothing may be sent.
   */
  record(call: HeldCall): void | Promise<void>
  /** The provider surely took nothing: as if the call had never been recorded. To be awaited before the next entry; never fails. */
  retract(call: HeldCall): void | Promise<void>
  /** The store knows how the call goes on; its entry is of no further use. */
  forget(callId: string): void
  /** Whether a call that was taken over may have reached its provider; true where nobody can tell. */
  mayHaveLeft(call: Pick<UnfinishedCall, 'ref' | 'isSent'>): boolean
  /** The calls that earlier processes left have been dealt with: their entries are dropped. */
  dropEarlier(): void
}

/** The entry could not be written, so nothing was sent. */
export class SentJournalError extends Error {
  override readonly name = 'SentJournalError'
}

/** What a provider reports about a submit while it runs. */
export interface Sending {
  /** To be awaited before the first byte leaves; throws SentJournalError, to be passed on, when nothing may be sent. */
  begins(): void | Promise<void>
  /** The provider surely did not take what was sent; it may be sent again later. To be awaited before that. */
  leftNothing(): void | Promise<void>
}

/** `isLost`: whether the node was told that another one has the call. */
export function createSending(
  journal: Pick<SentJournal, 'record' | 'retract'>,
  call: HeldCall,
  isLost: () => boolean,
): Sending {
  return {
    begins() {
      if (isLost()) throw new SentJournalError('another node looks after this call now')
      try {
        const recording = journal.record(call)
        if (recording instanceof Promise) return recording.catch(refuse)
      } catch (error) {
        refuse(error)
      }
    },
    leftNothing: () => journal.retract(call),
  }
}

function refuse(error: unknown): never {
  throw new SentJournalError('what is about to be sent could not be written down', { cause: error })
}
