/**
 * Takes an admitted call to its end: submit, store the handle, poll, conclude. It runs beside whoever waits and never throws:
 * whatever happens ends in the store, or, when the process stops, is left to the next process. A call that another node has
 * taken over is not asked for any more.
 */
import { sleep } from '../../../../lib/waiting/sleep.ts'
import type { EventBus } from '../../events/event-bus.ts'
import { toHealthName } from '../alternates/prepare-attempts.ts'
import { type ProviderHealth, toPaused, toVerdict } from '../alternates/provider-health.ts'
import type { Json } from '../catalog/model.ts'
import type { EventReading, Provider, ProviderRefusal, ProviderTask, SubmitOutcome } from '../provider.ts'
import type { RequestStore } from '../queue/request-store.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'
import type { CallLeases } from './call-leases.ts'
import type { CallStore } from './call-store.ts'
import {
  type ConcludeDeps,
  type Conclusion,
  createConcludeRefusal,
  createConcludeResult,
  writePersistently,
} from './conclude-call.ts'
import { createSending, type DrivenCall, type SentJournal, SentJournalError, servingModelOf } from './live-calls.ts'
import { relayEvents } from './relay-events.ts'
import type { ToldTask } from './told-task.ts'
import { type AttemptObserver, createTryAttempts, type Dispatch } from './try-attempts.ts'

/** Plain callbacks for metrics and log lines. They are called after the fact, must not throw and must not wait. */
export interface CallObserver extends AttemptObserver {
  /** An admitted call has ended, whether or not its caller still waits. `refusal` is null for a result. */
  ended(call: {
    readonly provider: string
    readonly model: string
    readonly refusal: RouterRefusal | null
    readonly durationMs: number
    readonly chargedMicros: number | null
  }): void
  /** A request that was answered without a call of its own. */
  answered(request: {
    readonly provider: string
    readonly how: 'replayed' | 'refused'
    readonly refusal: RouterRefusal | null
  }): void
  polled(poll: { readonly provider: string; readonly outcome: string }): void
  /** The provider has a problem that only the operator can solve, or the outcome is unknown. */
  unresolved(call: { readonly provider: string; readonly model: string; readonly callId: string }): void
}

export interface DriveDeps extends ConcludeDeps {
  readonly store: Pick<CallStore, 'finish' | 'keepProgress' | 'beginAttempt'>
  readonly health: Pick<ProviderHealth, 'enter' | 'note'>
  readonly requests: Pick<RequestStore, 'putBack'>
  readonly observer: CallObserver
  readonly journal: Pick<SentJournal, 'record' | 'retract' | 'forget'>
  readonly leases: Pick<CallLeases, 'letGo'>
  readonly bus: Pick<EventBus<never>, 'publishCall'>
  /** How long a submit may take beyond the time that its caller waits: its answer is paid for. */
  readonly submitGraceMs: number
  /** How long a generation is asked for before it is given up. */
  readonly collectForMs: number
}

export interface DriveCall {
  submit(call: DrivenCall, provider: Provider, dispatch: Dispatch): Promise<void>
  /** Goes on with a generation that has a handle. */
  collect(call: DrivenCall, provider: Provider, handle: Json): Promise<void>
}

/** After so many failed polls in a row a waiting caller gets an error. */
const TOLERATED_POLLS = 5
const MAX_POLL_PAUSE_MS = 150_000
const POLL_MS = 120_000
const MIN_POLL_PAUSE_MS = 10
const MAX_PAUSE_BEFORE_SENDING_MS = 15_000
/** By then the next process may have taken up what this one leaves. */
const STOPPED_FOR_SECONDS = 5
const STOPPING = 'the service is stopping'

export function createDriveCall(deps: DriveDeps): DriveCall {
  const { store, clock, journal, log, stopping } = deps
  const concludeResult = createConcludeResult(deps)
  const concludeRefusal = createConcludeRefusal(deps)
  const ends = createEnds(deps)
  const submitUntilSent = createSubmitUntilSent(deps, ends)
  const tryAttempts = createTryAttempts(deps, submitUntilSent)
  const poll = createPoll(deps, ends)

  async function send(admitted: DrivenCall, native: Provider, dispatch: Dispatch, startedAt: Date) {
    const { planned } = dispatch
    if (planned !== undefined) return tryAttempts(admitted, { ...dispatch, planned }, startedAt)
    const outcome = await submitUntilSent(admitted, native, dispatch, startedAt)
    return { call: admitted, provider: native, outcome }
  }

  async function submit(admitted: DrivenCall, native: Provider, dispatch: Dispatch): Promise<void> {
    const startedAt = clock.now()
    const { call, provider, outcome } = await send(admitted, native, dispatch, startedAt).finally(() =>
      dispatch.onSent?.(),
    )
    if (outcome === 'left') return
    if (outcome.outcome === 'accepted') {
      const kept = await keepHandle(call, outcome.handle, outcome.told)
      if (kept === 'lost') return call.live.leaveElsewhere()
      if (kept === 'kept') journal.forget(call.live.ref.id)
      call.live.isCollectable = kept === 'kept'
      if (outcome.told !== undefined) call.live.accept(outcome.told)
      await poll(call, provider, { handle: outcome.handle, pollAfterMs: outcome.pollAfterMs, startedAt })
      return
    }
    const told = outcome.outcome === 'finished' ? await relayEvents(call, outcome.result, toBounds(dispatch)) : outcome
    const conclusion =
      told.outcome === 'finished'
        ? await concludeResult(call, told.result)
        : await concludeRefusal(call, dispatch.isRepeat ? asRepeat(told.refusal) : told.refusal)
    ends.end(call, conclusion, startedAt)
  }

  const toBounds = ({ deadlineMs }: Dispatch) => ({
    maxKeptBytes: deps.limits.maxReplayBytes,
    maxMs: deadlineMs + deps.submitGraceMs,
    log,
  })

  /** Stored before the first poll: from then on the generation cannot be lost. */
  async function keepHandle(
    { live, quote, isOwnKey }: DrivenCall,
    handle: Json,
    told: ToldTask | undefined,
  ): Promise<'kept' | 'lost' | 'failed'> {
    try {
      const write = () => store.keepProgress(live.ref, { handle, quote, isOwnKey, ...(told !== undefined && { told }) })
      return (await writePersistently(write, stopping)) ? 'kept' : 'lost'
    } catch (error) {
      log.error({ err: error, callId: live.ref.id }, 'a handle could not be stored; only this process can collect it')
      return 'failed'
    }
  }

  return {
    submit,
    collect: (call, provider, handle) => poll(call, provider, { handle, pollAfterMs: 0, startedAt: clock.now() }),
  }
}

function createPoll(deps: DriveDeps, { leave, end }: Ends) {
  const { clock, observer, log, stopping } = deps
  const concludeResult = createConcludeResult(deps)
  const concludeRefusal = createConcludeRefusal(deps)

  async function poll(
    call: DrivenCall,
    provider: Provider,
    { handle, pollAfterMs, startedAt }: Polling,
  ): Promise<void> {
    const { live } = call
    const task = { model: servingModelOf(call), accountId: live.ref.accountId, handle, isOwnKey: call.isOwnKey }
    const giveUpAt = startedAt.getTime() + deps.collectForMs
    let failures = 0
    let isStopSent = false
    live.pollAfterMs = pollAfterMs
    while (true) {
      await live.pause(toPause(live.pollAfterMs))
      if (live.isLost) return live.leaveElsewhere()
      if (stopping.aborted) return leave(call)
      if (live.isAskedToStop && !isStopSent) {
        isStopSent = true
        await tryCancel(provider, task, live.signal)
      }
      const outcome = await tryPoll(provider, task, live.signal)
      observer.polled({ provider: task.model.provider, outcome: outcome.outcome })
      if (outcome.outcome === 'finished') return end(call, await concludeResult(call, outcome.result), startedAt)
      if (outcome.outcome === 'refused') return end(call, await concludeRefusal(call, outcome.refusal), startedAt)
      if (clock.now().getTime() >= giveUpAt) return abandon(call, startedAt)
      failures = outcome.outcome === 'pending' ? 0 : failures + 1
      live.pollAfterMs = outcome.pollAfterMs * 2 ** Math.max(0, Math.min(6, failures - 1))
      if (failures >= TOLERATED_POLLS)
        live.discourage(
          'provider_failed',
          `${task.model.provider} accepted the call and cannot be asked for its result now`,
        )
    }
  }

  async function tryPoll(provider: Provider, task: ProviderTask, signal: AbortSignal) {
    const deadline = new Date(clock.now().getTime() + POLL_MS)
    try {
      return await provider.poll(task, { signal, deadline })
    } catch (error) {
      log.error({ err: error, model: task.model.id }, 'an adapter failed while polling')
      return { outcome: 'unreachable' as const, message: 'the poll failed', pollAfterMs: 5000 }
    }
  }

  async function tryCancel(provider: Provider, task: ProviderTask, signal: AbortSignal): Promise<void> {
    const deadline = new Date(clock.now().getTime() + POLL_MS)
    try {
      await provider.cancel?.(task, { signal, deadline })
    } catch (error) {
      log.warn({ err: error, model: task.model.id }, 'a provider could not be asked to stop; the generation continues')
    }
  }

  async function abandon(call: DrivenCall, startedAt: Date): Promise<void> {
    const refusal: ProviderRefusal = { ...UNKNOWN_OUTCOME, message: 'the provider never said how the generation ended' }
    end(call, await concludeRefusal(call, refusal), startedAt)
  }

  return poll
}

function createSubmitUntilSent(deps: DriveDeps, { leave }: Ends) {
  const { log, stopping, clock } = deps
  const submitWhileItWorks = createSubmitWhileItWorks(deps)

  /**
   * A queued call has no client that would repeat it, so if it could not be sent it keeps its slot and retries until its time is over.
   * `left`: somebody else has it now, or will.
   */
  async function submitUntilSent(
    call: DrivenCall,
    provider: Provider,
    dispatch: Dispatch,
    startedAt: Date,
  ): Promise<SubmitOutcome | 'left'> {
    const { live, isQueued } = call
    const giveUpAt = startedAt.getTime() + dispatch.deadlineMs
    while (true) {
      const outcome = await submitWhileItWorks(call, provider, dispatch, startedAt)
      const pauseMs = isQueued && dispatch.isImpatient !== true ? toPauseBeforeSending(outcome) : null
      if (pauseMs === null || clock.now().getTime() + pauseMs >= giveUpAt) return outcome
      await sleep(pauseMs, live.signal)
      if (live.isLost) {
        live.leaveElsewhere()
        return 'left'
      }
      if (live.isAskedToStop) return { outcome: 'refused', refusal: CALLED_OFF }
      if (stopping.aborted) {
        await leaveUnsent(call)
        return 'left'
      }
    }
  }

  /** Waits in the queue again, for the next process. A stop is no loss, of which a call survives only a few. */
  async function leaveUnsent({ live }: DrivenCall): Promise<void> {
    try {
      await deps.requests.putBack(live.ref, { isLoss: false })
      live.abandon('unavailable', STOPPING, STOPPED_FOR_SECONDS)
    } catch (error) {
      log.warn({ err: error, callId: live.ref.id }, 'a request could not be put back; another process finds it')
      leave({ live })
    }
  }

  return submitUntilSent
}

function createSubmitWhileItWorks(deps: DriveDeps) {
  const { clock, health, journal, log, stopping } = deps

  async function trySubmit(
    driven: DrivenCall,
    provider: Provider,
    { body, contentType, keyId, input, deadlineMs, isRepeat, isImpatient }: Dispatch,
    startedAt: Date,
  ): Promise<SubmitOutcome> {
    const { live } = driven
    const model = servingModelOf(driven)
    const timer = setTimeout(() => live.interrupt(), deadlineMs + deps.submitGraceMs)
    const { accountId, id: submitKey } = live.ref
    const deadline = new Date(startedAt.getTime() + deadlineMs)
    try {
      const about = { model, accountId, submitKey, isRepeat, isOwnKey: driven.isOwnKey }
      const call = { ...about, body, contentType, keyId, input }
      const isHarmless = provider.deduplicates(model, null)
      const sending = isHarmless ? undefined : createSending(journal, live.ref, () => live.isLost)
      if (provider.announcesSends !== true) await sending?.begins()
      return await provider.submit(call, { signal: live.signal, deadline, sending, isImpatient })
    } catch (error) {
      if (error instanceof SentJournalError) {
        log.error({ err: error, callId: submitKey }, 'a call could not be recorded as sent, so it was not sent')
        return { outcome: 'refused', refusal: NOT_SENT }
      }
      log.error({ err: error, callId: submitKey, model: model.id }, 'an adapter failed; a generation may exist')
      return { outcome: 'refused', refusal: UNKNOWN_OUTCOME }
    } finally {
      clearTimeout(timer)
    }
  }

  /** A provider that keeps failing is not asked; every answer, and every silence, tells how it is. */
  return async function submitWhileItWorks(
    driven: DrivenCall,
    provider: Provider,
    dispatch: Dispatch,
    startedAt: Date,
  ): Promise<SubmitOutcome> {
    if (provider.isPausedAfterFailures !== true) return trySubmit(driven, provider, dispatch, startedAt)
    const keyOwner = driven.isOwnKey ? 'account' : 'service'
    const name = toHealthName({ modelId: servingModelOf(driven).id, keyOwner }, driven.live.ref.accountId)
    // A second submit of a call that was sent before only asks what became of the first.
    const pausedMs = dispatch.isRepeat ? 0 : await health.enter(name)
    if (pausedMs > 0) return { outcome: 'refused', refusal: toPaused(provider.name, pausedMs) }
    const sentAt = clock.now().getTime()
    const outcome = await trySubmit(driven, provider, dispatch, startedAt)
    const note = (verdict: 'worked' | 'failed') => {
      // What this process cuts off because it stops, the others need not be kept from.
      if (verdict === 'worked' || !stopping.aborted) health.note(name, verdict, clock.now().getTime() - sentAt)
    }
    if (outcome.outcome === 'finished' && outcome.result.events !== undefined)
      return { ...outcome, result: { ...outcome.result, events: withVerdict(outcome.result.events, note) } }
    const verdict = toVerdict(outcome, driven.isOwnKey)
    if (verdict !== null) note(verdict)
    return outcome
  }
}

/** Only its end tells how a provider is whose answer comes bit by bit. */
function withVerdict(events: EventReading, note: (verdict: 'worked' | 'failed') => void): EventReading {
  return {
    read: events.read,
    end(isEnded) {
      const told = events.end(isEnded)
      note(told.isWhole ? 'worked' : 'failed')
      return told
    },
  }
}

type Ends = ReturnType<typeof createEnds>

function createEnds({ clock, observer, journal, leases, bus }: DriveDeps) {
  /** The row keeps its handle; the next process collects. */
  function leave({ live }: Pick<DrivenCall, 'live'>): void {
    leases.letGo(live.ref)
    live.abandon('unavailable', STOPPING, STOPPED_FOR_SECONDS)
  }

  function end({ live }: DrivenCall, conclusion: Conclusion, startedAt: Date): void {
    const { end: ending, chargedMicros, stored } = conclusion
    if (stored === 'failed') leases.letGo(live.ref)
    else journal.forget(live.ref.id)
    const isResult = !(ending instanceof RouterError) && ending.kind === 'result'
    // The node that has the call now knows better than a failure here. A result is one, whoever is charged for it.
    if (stored === 'lost' && !isResult) {
      live.leaveElsewhere()
      return
    }
    const refusal =
      ending instanceof RouterError ? ending.refusal : ending.kind === 'refusal' ? ending.refusal.refusal : null
    const { provider, isOwn = false, id } = live.model
    // Accounts choose the names of their own models: of figures there must not be as many.
    const model = isOwn ? `${provider}/*` : id
    observer.ended({
      provider,
      model,
      refusal,
      durationMs: clock.now().getTime() - startedAt.getTime(),
      chargedMicros,
    })
    live.end(ending)
    bus.publishCall({ callId: live.ref.id, accountId: live.ref.accountId, move: 'ended' })
  }

  return { leave, end }
}

interface Polling {
  readonly handle: Json
  readonly pollAfterMs: number
  readonly startedAt: Date
}

const UNKNOWN_OUTCOME: ProviderRefusal = {
  reason: 'failed',
  message: 'the provider could not be understood, and whether it made anything is not known',
  upstreamStatus: null,
  generation: 'possible',
}

/** This submit left nothing at the provider; the one before may have. */
function asRepeat(refusal: ProviderRefusal): ProviderRefusal {
  return refusal.generation === 'none' ? { ...refusal, generation: 'possible' } : refusal
}

const CALLED_OFF: ProviderRefusal = {
  reason: 'failed',
  message: 'the request was cancelled before it ran; nothing was charged',
  upstreamStatus: null,
  generation: 'none',
}

/** null: it was sent, or can never be. */
function toPauseBeforeSending(outcome: SubmitOutcome): number | null {
  if (outcome.outcome !== 'refused') return null
  const { refusal } = outcome
  if (refusal.reason !== 'unavailable' || refusal.generation !== 'none' || refusal.retryAfterSeconds === null)
    return null
  return toPause(Math.min(refusal.retryAfterSeconds * 1000, MAX_PAUSE_BEFORE_SENDING_MS))
}

const NOT_SENT: ProviderRefusal = {
  reason: 'unavailable',
  message: 'the service cannot write down that it sends the call, so it did not send it; try again later',
  upstreamStatus: null,
  generation: 'none',
  retryAfterSeconds: 10,
}

function toPause(pollAfterMs: number): number {
  return Math.min(MAX_POLL_PAUSE_MS, Math.max(MIN_POLL_PAUSE_MS, pollAfterMs))
}
