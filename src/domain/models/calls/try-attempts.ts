/** Sends a call to the providers of its plan, one after the other, until one has taken it or nobody may be asked any more. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { ReadyAttempt } from '../alternates/prepare-attempts.ts'
import type { JsonRecord } from '../catalog/model.ts'
import type { Provider, ProviderRefusal, SubmitOutcome } from '../provider.ts'
import { type AttemptEnd, type CallPlan, toServed, withEnd } from './call-plan.ts'
import type { AtAttempt, CallStore } from './call-store.ts'
import { writePersistently } from './conclude-call.ts'
import type { DrivenCall, SentJournal } from './live-calls.ts'

/** What is told of attempts, for figures. */
export interface AttemptObserver {
  attempted(attempt: { readonly provider: string; readonly model: string; readonly outcome: string }): void
  fellBack(move: { readonly from: string; readonly to: string; readonly reason: string }): void
}

interface AttemptDeps {
  readonly store: Pick<CallStore, 'beginAttempt'>
  readonly journal: Pick<SentJournal, 'retract'>
  readonly observer: AttemptObserver
  readonly clock: Clock
  readonly log: Log
  readonly stopping: AbortSignal
}

/** What a first submit needs; gone as soon as the provider has it. */
export interface Dispatch {
  readonly body: Buffer
  /** Left out: JSON. */
  readonly contentType?: string
  /** The API key that the call came with; left out or null: not known. */
  readonly keyId?: string | null
  readonly input: JsonRecord
  readonly deadlineMs: number
  /** The call was submitted before, under the same id, and nobody knows what became of it. */
  readonly isRepeat: boolean
  /** Who may serve it; left out: the given provider alone. */
  readonly planned?: PlannedDispatch
  /** Another provider is asked rather than this one waited for. */
  readonly isImpatient?: boolean
  /** Called when nobody reads the body any more. */
  readonly onSent?: () => void
}

/** A call that has a plan, and what its attempts send. */
interface PlannedDispatch extends AtAttempt {
  readonly plan: CallPlan
  /** Of the model's own. */
  readonly native: Provider
  /** null: the model is not there any more, or does not take this input any more. */
  readonly ready: (modelId: string) => ReadyAttempt | null
}

interface Sent {
  /** At the attempt that was sent. */
  readonly call: DrivenCall
  readonly provider: Provider
  /** `left`: somebody else has it now, or will. */
  readonly outcome: SubmitOutcome | 'left'
}

type SubmitOne = (call: DrivenCall, provider: Provider, dispatch: Dispatch, startedAt: Date) => Promise<Sent['outcome']>

export function createTryAttempts(deps: AttemptDeps, submitOne: SubmitOne) {
  const { store, journal, observer, clock, log, stopping } = deps

  /** False: the call is not this node's any more. */
  async function moveOn(call: DrivenCall, at: Attempt): Promise<boolean> {
    // What was refused is not there: after a crash from here on, the call counts as one that was never sent.
    await journal.retract(call.live.ref)
    return writePersistently(() => store.beginAttempt(call.live.ref, at), stopping)
  }

  return async function tryAttempts(
    call: DrivenCall,
    dispatch: Dispatch & { readonly planned: PlannedDispatch },
    startedAt: Date,
  ): Promise<Sent> {
    const { live } = call
    const { planned } = dispatch
    const lateAt = startedAt.getTime() + dispatch.deadlineMs
    // For a call whose attempt could not even be begun.
    const whole = { call, provider: dispatch.planned.native }
    let { plan, attemptIndex } = planned
    for (;;) {
      const attempt = plan.attempts[attemptIndex]
      if (attempt === undefined) throw new Error(`The plan of the call ${live.ref.id} has no attempt ${attemptIndex}.`)
      const next = plan.attempts[attemptIndex + 1]
      const isLast = next === undefined || dispatch.isRepeat
      const sent = toSent(call, dispatch, { plan, attemptIndex })
      const outcome =
        sent === null
          ? GONE
          : await submitOne(sent.call, sent.provider, { ...sent.dispatch, isImpatient: !isLast }, startedAt)
      const end = outcome === 'left' || outcome.outcome !== 'refused' ? null : toAttemptEnd(outcome.refusal)
      observer.attempted({ provider: attempt.provider, model: attempt.modelId, outcome: toWord(outcome, end) })
      const isOver = isLast || live.isLost || live.isAskedToStop || stopping.aborted || clock.now().getTime() >= lateAt
      if (end === null || isOver || next === undefined) return { ...(sent ?? whole), outcome }
      const isPaused = outcome !== 'left' && outcome.outcome === 'refused' && outcome.refusal.reason === 'unavailable'
      const moved = { plan: withEnd(plan, attemptIndex, isPaused ? 'paused' : end), attemptIndex: attemptIndex + 1 }
      try {
        if (!(await moveOn(call, moved))) {
          live.leaveElsewhere()
          return { ...(sent ?? whole), outcome: 'left' }
        }
      } catch (error) {
        log.error(
          { err: error, callId: live.ref.id },
          'the next attempt of a call could not be written down, so it ends',
        )
        return { ...(sent ?? whole), outcome }
      }
      observer.fellBack({ from: attempt.provider, to: next.provider, reason: isPaused ? 'paused' : end })
      log.info({ callId: live.ref.id, from: attempt.modelId, to: next.modelId }, 'a call goes to another provider')
      ;({ plan, attemptIndex } = moved)
    }
  }
}

interface Attempt {
  readonly plan: CallPlan
  readonly attemptIndex: number
}

/** What is sent for an attempt; null: nothing can be. */
function toSent(call: DrivenCall, dispatch: Dispatch & { readonly planned: PlannedDispatch }, at: Attempt) {
  const attempt = at.plan.attempts[at.attemptIndex]
  const ready = attempt === undefined ? null : dispatch.planned.ready(attempt.modelId)
  if (ready === null) return null
  const { provider, body, input } = ready
  return { call: atAttempt(call, ready, at), provider, dispatch: { ...dispatch, body, input } }
}

const GONE: SubmitOutcome = {
  outcome: 'refused',
  refusal: {
    reason: 'unavailable',
    message: 'the model that was to serve this call is not there any more; nothing was sent',
    upstreamStatus: null,
    generation: 'none',
    retryAfterSeconds: null,
  },
}

/** The call as it is at one attempt of its plan: with the model that is called, its price and its key. */
export function atAttempt(
  call: DrivenCall,
  { model, quote }: Pick<ReadyAttempt, 'model' | 'quote'>,
  { plan, attemptIndex }: Attempt,
): DrivenCall {
  const attempt = plan.attempts[attemptIndex]
  const isTranslated = attempt?.form === 'translated'
  const serving = {
    model,
    alternate: isTranslated ? (model.alternate ?? null) : null,
    served: toServed(plan, attemptIndex),
  }
  return { ...call, quote, isOwnKey: attempt?.keyOwner === 'account', serving }
}

function toWord(outcome: Sent['outcome'], end: string | null): string {
  if (outcome === 'left') return 'left'
  if (outcome.outcome !== 'refused') return outcome.outcome
  if (end !== null) return end
  return outcome.refusal.generation === 'possible' ? 'lost' : 'refused'
}

/**
 * How an attempt ended, where another provider may be asked after it; null: never after such an end. Whatever is not surely known
 * to have left nothing ends the call, and so does everything that is about the request: a second provider would only be a
 * second opinion on it.
 */
function toAttemptEnd({ reason, generation, upstreamStatus }: ProviderRefusal): AttemptEnd | null {
  if (generation !== 'none' || reason === 'policy' || reason === 'invalid' || reason === 'refused') return null
  return upstreamStatus === null ? 'not_sent' : 'not_accepted'
}
