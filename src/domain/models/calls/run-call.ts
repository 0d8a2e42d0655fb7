/**
 * One call of one model: admitted, dispatched, waited for; and the estimate of its price. The order of the checks is the
 * contract's; those that need the store are made in one transaction. A caller who leaves before the end changes nothing: the
 * call goes on, is recorded and is billed.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { type BudgetExcess, sayBudget } from '../../credits/budgets/budget.ts'
import { type AccessRules, neverFits, toNeverFitting, toSpend } from '../access/model-access.ts'
import type { OpenedModel } from '../access/own-models.ts'
import { type PrepareDeps, type PreparedCall, prepareCall, type ReadyAttempt } from '../alternates/prepare-attempts.ts'
import type { JsonRecord } from '../catalog/model.ts'
import { type Estimate, estimatePrice, holdFor, leastPrice, quoteFor } from '../pricing/pricing.ts'
import { RouterError, type Spend, type ValidationFailure } from '../router-error.ts'
import type { CallLeases, FollowedCalls } from './call-leases.ts'
import type { PlannedAttempt } from './call-plan.ts'
import type { AdmitOutcome, CallEnd, CallLimits, CallRef, CallStore, NewCall } from './call-store.ts'
import type { CallObserver, DriveCall } from './drive-call.ts'
import { type DrivenCall, type Listener, LiveCall, type LiveCalls, TakenElsewhere, toToldResult } from './live-calls.ts'

interface RunRequest {
  readonly opened: OpenedModel
  readonly accountId: string
  /** The API key that it came with; left out: none. */
  readonly keyId?: string | null
  /** What its caller called it, for budgets; left out: nothing. */
  readonly tag?: string | null
  /** The job that caused it; left out: none is known. */
  readonly jobId?: string | null
  readonly requestId: string
  readonly key: string | null
  readonly fingerprint: string
  readonly body: Buffer
  /** Of the body; left out: JSON. */
  readonly contentType?: string
  /** Parsed; or why it could not be, which is answered only after the checks that come before it. */
  readonly input: JsonRecord | RouterError
  readonly baseUrl: string
  readonly listener: Listener
  /** Called when the body is needed beyond the request; returns what to call when it is needed no longer. */
  readonly holdBody?: () => () => void
  /** The caller follows the task itself and waits only until the provider has taken the call. */
  readonly followsTask?: boolean
}

export interface RunAnswer {
  readonly end: CallEnd
  readonly isReplay: boolean
  /** As it stood when the request came. */
  readonly spend: Spend | null
}

/** Throws RouterError. */
export type RunModel = (request: RunRequest) => Promise<RunAnswer>

export interface NewCallDeps extends PrepareDeps {
  readonly clock: Clock
  readonly keyLifeMs: number
  /** A call that costs more counts against the smaller pool too. */
  readonly costlyMicros: number
}

interface RunModelDeps extends NewCallDeps {
  readonly store: Pick<CallStore, 'admit' | 'findTold'>
  readonly live: LiveCalls
  readonly leases: Pick<CallLeases, 'next' | 'confirm'>
  readonly followed: FollowedCalls
  readonly access: Pick<AccessRules, 'limitsOf'>
  readonly observer: CallObserver
  readonly drive: DriveCall
  readonly deadlineMs: number
}

// A request that followed a call to other nodes so often tells its caller to try again later.
const MAX_MOVES = 5

export function createRunModel(deps: RunModelDeps): RunModel {
  const { store, live, leases, drive, observer } = deps
  const { findTold, answerWithout, takeUp } = createAnswers(deps)

  /** `moves`: how often the call of this key went to another node while the request waited for it. */
  async function run(request: RunRequest, moves = 0): Promise<RunAnswer> {
    live.refuseWhenClosing()
    if (moves > MAX_MOVES) throw stillRunning(1)
    if (request.listener.left?.aborted) throw hasLeft()
    const { failures, isValid, prepared } = judge(deps, request)
    const limits = deps.access.limitsOf(request.accountId)
    const call = toNewCall(deps, request, { isValid, prepared })
    const lease = leases.next()
    const outcome = await store.admit(call, limits, { isValid, lease })
    if (outcome.outcome === 'keys_changed') return run(await openAgain(request), moves + 1)
    try {
      const told = request.followsTask === true ? await findTold(request, outcome) : null
      if (told !== null) return told
      if (outcome.outcome === 'running') return await takeUp(request, outcome.ref, toSpend(limits, outcome.standing))
      if (outcome.outcome !== 'admitted') return answerWithout(request, outcome, { call, failures, limits })
      // A process that was stopped meanwhile, and goes on, may come too late: nothing has renewed the lease.
      if (deps.clock.now() >= lease.until && !(await leases.confirm(outcome.ref)))
        throw new TakenElsewhere('the call was taken over before it began')
      const end = await start(request, call, outcome, prepared)
      return { end, isReplay: false, spend: toSpend(limits, outcome.standing) }
    } catch (error) {
      // What the record of the key says now.
      if (error instanceof TakenElsewhere) return run(request, moves + 1)
      throw error
    }
  }

  function start(
    request: RunRequest,
    call: NewCall,
    admitted: Extract<AdmitOutcome, { outcome: 'admitted' }>,
    { ready }: PreparedCall,
  ): Promise<CallEnd> {
    const { ref, plan, attemptIndex } = admitted
    const { model, provider, isOwnKey } = request.opened
    const { body, contentType, keyId } = request
    const input = request.input as JsonRecord
    const deadlineMs = Math.min(model.deadlineMs ?? deps.deadlineMs, deps.deadlineMs)
    const running = new LiveCall(ref, model, { hasWaiter: true, isCollectable: false, isKeyed: call.key !== null })
    const driven: DrivenCall = {
      live: running,
      baseUrl: request.baseUrl,
      isKeyed: call.key !== null,
      isQueued: false,
      isOwnKey,
      quote: quoteFor(model.price, input),
    }
    const isRepeat = ref.id !== call.id
    const onSent = request.holdBody?.()
    const planned = plan === null ? undefined : { plan, attemptIndex, native: provider, ready: toFinder(ready) }
    live.track(
      running,
      drive.submit(driven, provider, { body, contentType, keyId, input, deadlineMs, isRepeat, onSent, planned }),
    )
    return running.wait(request.listener, deadlineMs)
  }

  return (request) =>
    run(request).catch((error: unknown) => {
      if (error instanceof RouterError) {
        const { refusal } = error
        observer.answered({ provider: request.opened.model.provider, how: 'refused', refusal })
      }
      throw error
    })
}

/** With the keys that the account has at providers now. */
export async function openAgain<Request extends { readonly opened: OpenedModel }>(request: Request): Promise<Request> {
  const { opened } = request
  return { ...request, opened: { ...opened, ...(await opened.keys?.again()) } }
}

/** Answers a request without a call of its own: from what its key stands for, or from what was wrong. */
function createAnswers(deps: RunModelDeps) {
  const { store, live, followed, observer } = deps

  /** What an earlier request with this key was told of its task, however far the task is. */
  async function findTold(request: RunRequest, { outcome, ...rest }: AdmitOutcome): Promise<RunAnswer | null> {
    if ((outcome !== 'running' && outcome !== 'done') || request.key === null) return null
    const running = 'ref' in rest ? (live.find(rest.ref.id)?.told ?? null) : null
    const told = running ?? (await store.findTold(request.accountId, { key: request.key }))?.told ?? null
    return told === null ? null : { end: { kind: 'result', result: toToldResult(told) }, isReplay: true, spend: null }
  }

  function answerWithout(
    request: RunRequest,
    outcome: Exclude<AdmitOutcome, { outcome: 'admitted' | 'running' | 'keys_changed' }>,
    context: { readonly call: NewCall; readonly failures: readonly ValidationFailure[]; readonly limits: CallLimits },
  ): RunAnswer {
    switch (outcome.outcome) {
      case 'done':
        observer.answered({ provider: request.opened.model.provider, how: 'replayed', refusal: null })
        return { end: outcome.end, isReplay: true, spend: toSpend(context.limits, outcome.standing) }
      case 'waiting':
        throw stillRunning(1)
      case 'other_request':
        throw keyUnusable('this Idempotency-Key was used for a different request; use a new one')
      case 'unusable':
        throw keyUnusable(UNTOLD)
      case 'no_credits':
        throw noCredits(outcome.budget)
      case 'invalid':
        throw request.input instanceof RouterError ? request.input : toInvalid(context.failures)
      case 'calls_exhausted':
      case 'spend_exhausted':
        throw toExhausted(outcome.outcome, toSpend(context.limits, outcome.standing), context)
    }
  }

  /** The call of this key is under way. When no request waits for it any more, this one does. */
  async function takeUp({ opened, listener }: RunRequest, ref: CallRef, spend: Spend): Promise<RunAnswer> {
    const deadlineMs = Math.min(opened.model.deadlineMs ?? deps.deadlineMs, deps.deadlineMs)
    const running = live.find(ref.id)
    if (running !== null && !running.isLost) {
      if (!running.canBeTakenUp) throw stillRunning(running.retryAfterSeconds)
      return { end: await running.wait(listener, deadlineMs), isReplay: true, spend }
    }
    switch (await followed.untilMoved(ref, { listener, deadlineMs })) {
      case 'moved':
        throw new TakenElsewhere('the call does not run there any more')
      case 'busy':
        throw stillRunning(1)
      case 'left':
        throw hasLeft()
      case 'late':
        throw new RouterError('deadline', STILL_ELSEWHERE, { retryAfterSeconds: 1 })
    }
  }

  return { findTold, answerWithout, takeUp }
}

interface Judged {
  readonly isValid: boolean
  readonly failures: readonly ValidationFailure[]
  readonly prepared: PreparedCall
}

const UNPREPARED: PreparedCall = { plan: null, ready: [], failures: [] }

/** Whether the input is valid, and for whom of those who may serve the call. */
export function judge(
  deps: PrepareDeps,
  { opened, input, body }: Pick<RunRequest, 'opened' | 'input' | 'body'>,
): Judged {
  if (input instanceof RouterError) return { isValid: false, failures: [], prepared: UNPREPARED }
  const failures = opened.checkInput(input)
  if (failures.length > 0) return { isValid: false, failures, prepared: UNPREPARED }
  const prepared = prepareCall(opened, { body, input }, deps)
  return { isValid: prepared.failures.length === 0, failures: prepared.failures, prepared }
}

function toFinder(ready: readonly ReadyAttempt[]) {
  return (modelId: string) => ready.find(({ model }) => model.id === modelId) ?? null
}

export function toNewCall(
  { clock, keyLifeMs, costlyMicros }: NewCallDeps,
  request: Omit<RunRequest, 'body' | 'listener' | 'holdBody'>,
  { isValid, prepared }: Pick<Judged, 'isValid' | 'prepared'>,
): NewCall {
  const { model, provider, isOwnKey } = request.opened
  const createdAt = clock.now()
  // Of an invalid input only the least price is known; an account that cannot pay even that is told so first.
  const micros = isValid ? holdFor(model.price, request.input as JsonRecord) : leastPrice(model.price)
  const isFree = isOwnKey || model.price.kind === 'free'
  return {
    id: request.requestId,
    accountId: request.accountId,
    key: request.key,
    fingerprint: request.fingerprint,
    modelId: model.id,
    keyId: request.keyId ?? null,
    tag: request.tag ?? null,
    jobId: request.jobId ?? null,
    baseUrl: request.baseUrl,
    createdAt,
    expiresAt: new Date(createdAt.getTime() + keyLifeMs),
    ...(request.opened.keys !== undefined && { keysVersion: request.opened.keys.version }),
    ...toAmounts(isFree ? null : micros, costlyMicros),
    ...toPlanned(prepared, costlyMicros),
    mayResubmit: provider.deduplicates(model, request.input instanceof RouterError ? null : request.input),
  }
}

function toAmounts(holdMicros: number | null, costlyMicros: number) {
  const micros = holdMicros ?? 0
  return { holdMicros, spendMicros: micros, isCostly: micros > costlyMicros }
}

/** What any of its providers may cost is held; without the dearer alternates it may be less. */
function toPlanned({ plan, ready }: PreparedCall, costlyMicros: number): Partial<NewCall> {
  if (plan === null) return {}
  const [first, ...others] = plan.attempts
  const holdOf = ({ holdMicros }: PlannedAttempt) => holdMicros ?? 0
  const toCall = (attempts: readonly PlannedAttempt[]) => {
    const isHeld = attempts.some(({ holdMicros }) => holdMicros !== null)
    const amounts = toAmounts(isHeld ? Math.max(...attempts.map(holdOf)) : null, costlyMicros)
    return { ...amounts, plan: { ...plan, attempts } }
  }
  const levels = [...new Set(others.map(holdOf))].filter((micros) => micros > holdOf(first)).toSorted((a, b) => b - a)
  const resubmittable = ready.filter(({ provider, model, input }) => provider.deduplicates(model, input))
  return {
    ...toCall(plan.attempts),
    narrower: levels.map((level) => toCall([first, ...others.filter((each) => holdOf(each) < level)])),
    resubmittable: resubmittable.map(({ model }) => model.id),
  }
}

export function toInvalid(failures: readonly ValidationFailure[]): RouterError {
  return new RouterError('invalid_fields', 'the input does not match the schema of the model', { failures })
}

export function noCredits(budget?: BudgetExcess): RouterError {
  if (budget !== undefined) return new RouterError('no_credits', sayBudget(budget))
  return new RouterError('no_credits', 'there are not enough credits to run this model; add credits and try again')
}

const STILL_ELSEWHERE =
  'the call took longer than this service holds a connection: it goes on, and is charged once if it ends well; the same Idempotency-Key tells how it ended and pays nothing more'

function hasLeft(): RouterError {
  return new RouterError('disconnected', 'the caller of this call has disconnected')
}

function stillRunning(retryAfterSeconds: number): RouterError {
  return new RouterError(
    'key_running',
    'the call with this Idempotency-Key is still running; try again later with the same key',
    {
      retryAfterSeconds,
    },
  )
}

export const UNTOLD =
  'this Idempotency-Key was used by a call whose answer cannot be given again, or is not known: it was cut off after it was sent. Nothing more is charged for it; use a new key'

export function keyUnusable(message: string): RouterError {
  return new RouterError('key_unusable', message)
}

function toExhausted(
  refusal: 'calls_exhausted' | 'spend_exhausted',
  spend: Spend,
  { call, limits }: { readonly call: NewCall; readonly limits: CallLimits },
): RouterError {
  if (neverFits(call, limits)) return toNeverFitting(call.spendMicros, limits.ceilingMicros, spend)
  const message =
    refusal === 'calls_exhausted'
      ? 'as many calls are under way as this account may have; try again when one has finished'
      : 'the calls under way have committed as much as this account may spend at a time; try again when one has finished'
  return new RouterError(refusal, message, { spend, retryAfterSeconds: 1 })
}

interface EstimateRequest {
  readonly opened: OpenedModel
  readonly accountId: string
  readonly body: Buffer
  readonly input: JsonRecord | RouterError
}

/** What a call would cost, after the same checks as a call; dispatches and charges nothing. Throws RouterError. */
export type EstimateModel = (request: EstimateRequest) => Promise<Estimate>

export function createEstimateModel(store: Pick<CallStore, 'canPay'>, prepare: PrepareDeps): EstimateModel {
  return async function estimateModel({ opened, accountId, body, input }) {
    const { model, isOwnKey } = opened
    const canPay = isOwnKey || (await store.canPay(accountId, leastPrice(model.price)))
    if (!canPay) throw noCredits()
    if (input instanceof RouterError) throw input
    const { failures, prepared } = judge(prepare, { opened, body, input })
    if (failures.length > 0) throw toInvalid(failures)
    if (prepared.plan !== null) return estimatePlan(prepared)
    if (opened.estimate !== undefined) return opened.estimate()
    return isOwnKey ? { source: 'exact', micros: 0 } : estimatePrice(model.price, input)
  }
}

/** From the least that one of its providers may make of it to the most that another may. */
function estimatePlan({ plan, ready }: PreparedCall): Estimate {
  const estimates = ready.map(({ model, input }, index) =>
    plan?.attempts[index]?.holdMicros == null
      ? ({ source: 'exact', micros: 0 } as const)
      : estimatePrice(model.price, input),
  )
  const unknown = estimates.find(({ source }) => source === 'unknown')
  if (unknown !== undefined) return unknown
  const bounds = estimates.flatMap((each) => {
    if (each.source === 'unknown') return []
    return each.source === 'exact' ? [each.micros] : [each.minMicros, each.maxMicros]
  })
  const [minMicros, maxMicros] = [Math.min(...bounds), Math.max(...bounds)]
  return minMicros === maxMicros
    ? { source: 'exact', micros: minMicros }
    : { source: 'estimated', minMicros, maxMicros }
}
