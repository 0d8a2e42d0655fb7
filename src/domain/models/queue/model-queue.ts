/**
 * Model calls without a held connection: put in a durable queue, run when the account has room, and asked for later. A
 * restart changes nothing: what waited waits, what ran is collected. Every node of a service takes requests out, whichever of them
 * put a request in.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import { createDoorbell } from '../../../../lib/waiting/sleep.ts'
import type { BlobStore, StoreBlob } from '../../assets/blob-store.ts'
import { isStoreAway, ServiceError } from '../../errors.ts'
import type { CallMoved, EventBus, Unsubscribe } from '../../events/event-bus.ts'
import type { ToHook } from '../../webhooks/job-hooks.ts'
import type { NewHook } from '../../webhooks/webhook.ts'
import { type AccessRules, accessWith, neverFits, refusalNow, toNeverFitting } from '../access/model-access.ts'
import type { OpenedModel, OwnModels } from '../access/own-models.ts'
import type { ProviderKeyRing } from '../access/provider-keys.ts'
import { createReadyAgain } from '../alternates/prepare-attempts.ts'
import type { CallLeases } from '../calls/call-leases.ts'
import {
  type CallBody,
  type CallStore,
  INLINE_BYTES,
  type NewLease,
  readCallBody,
  toChunks,
} from '../calls/call-store.ts'
import type { DriveCall } from '../calls/drive-call.ts'
import { LiveCall, type LiveCalls } from '../calls/live-calls.ts'
import {
  judge,
  keyUnusable,
  type NewCallDeps,
  noCredits,
  openAgain,
  toInvalid,
  toNewCall,
  UNTOLD,
} from '../calls/run-call.ts'
import type { Dispatch } from '../calls/try-attempts.ts'
import type { JsonRecord, Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import { quoteFor } from '../pricing/pricing.ts'
import type { Provider } from '../provider.ts'
import { RouterError } from '../router-error.ts'
import type { RequestStore, StoredRequest, TakenRequest } from './request-store.ts'

interface QueueRequest {
  /** What its caller called it, for budgets; left out: nothing. */
  readonly tag?: string | null
  readonly opened: OpenedModel
  readonly accountId: string
  readonly keyId?: string | null
  readonly key: string | null
  readonly fingerprint: string
  readonly body: Buffer
  readonly input: JsonRecord | RouterError
  readonly baseUrl: string
  /** An address that is told of its end; left out or null: only the webhooks of its account are. */
  readonly webhook?: string | null
}

interface Submitted {
  readonly requestId: string
  readonly position: number
  readonly isReplay: boolean
}

export interface ModelQueue extends AsyncDisposable {
  submit(request: QueueRequest): Promise<Submitted>
  /** Throws unknown_request, also for one of another model or another account. */
  find(accountId: string, modelId: string, requestId: string): Promise<StoredRequest>
  /** Resolves when the request is called off, or its generation is asked to stop. Throws unknown_request, already_completed. */
  cancel(accountId: string, modelId: string, requestId: string): Promise<void>
  /** Begins to take requests out. Harmless when called twice. */
  start(): void
}

interface ModelQueueDeps extends NewCallDeps {
  readonly store: RequestStore
  readonly calls: Pick<CallStore, 'finish'>
  readonly rules: AccessRules
  readonly catalog: () => Catalog
  readonly providerOf: (name: string) => Provider | null
  readonly own: Pick<OwnModels, 'find'>
  readonly accountKeys: Pick<ProviderKeyRing, 'now'>
  readonly live: LiveCalls
  readonly leases: Pick<CallLeases, 'next' | 'confirm' | 'letGo'>
  readonly bus: Pick<EventBus<never>, 'publishCall' | 'onCall'>
  readonly drive: DriveCall
  readonly storeBlob: StoreBlob
  readonly blobs: Pick<BlobStore, 'open'>
  readonly newId: NewId
  readonly log: Log
  readonly clock: Clock
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly maxBodyBytes: number
  readonly keepMs: number
  readonly toHook: ToHook
  /** The trace that a submit belongs to; left out: tracing is off. */
  readonly currentTrace?: () => TraceContext | null
  /** Whether requests may wait in the store that this node was not told of: false spares it a look. */
  readonly mayHaveWaiting: () => boolean
}

// Every submit and every end here wakes the loop. The timer finds what other nodes left, limits that changed, and requests that
// waited too long.
const LOOK_EVERY_MS = 5000
// A queued call has no caller who waits; a submit that takes longer than this has failed.
const SUBMIT_MS = 3_600_000

export function createModelQueue(deps: ModelQueueDeps): ModelQueue {
  const { store, clock, live } = deps
  const loop = openQueueLoop(deps)

  async function submit(request: QueueRequest): Promise<Submitted> {
    live.refuseWhenClosing()
    const { failures, isValid, prepared } = judge(deps, request)
    const requestId = deps.newId()
    const call = toNewCall(deps, { ...request, requestId }, { isValid, prepared })
    const limits = deps.rules.limitsOf(request.accountId)
    // It could never be taken out of the queue, and would hold up everything behind it.
    const isTooDear = isValid && neverFits(call, limits)
    const hook = await toCallHook(deps, request)
    const body = await keepBody(deps, request.body, isValid && !isTooDear)
    const outcome = await store.enqueue(
      { ...call, body, bodyBytes: request.body.length, hook, trace: deps.currentTrace?.() ?? null },
      { maxWaiting: deps.maxWaiting, isValid: isValid && !isTooDear },
    )
    switch (outcome.outcome) {
      case 'keys_changed':
        return submit(await openAgain(request))
      case 'queued':
        loop.wake()
        return { requestId, position: outcome.position, isReplay: false }
      case 'repeated': {
        const known = await store.find(request.accountId, outcome.id)
        return { requestId: outcome.id, position: known?.position ?? 0, isReplay: true }
      }
      case 'other_request':
        throw keyUnusable('this Idempotency-Key was used for a different request; use a new one')
      case 'unusable':
        throw keyUnusable(UNTOLD)
      case 'no_credits':
        throw noCredits(outcome.budget)
      case 'invalid':
        if (isTooDear) throw toNeverFitting(call.spendMicros, limits.ceilingMicros, null)
        throw request.input instanceof RouterError ? request.input : toInvalid(failures)
      case 'backlog_full':
        throw new RouterError(
          'backlog_full',
          `${deps.maxWaiting} requests of this account wait already; try again later`,
          {
            retryAfterSeconds: 10,
          },
        )
    }
  }

  async function find(accountId: string, modelId: string, requestId: string): Promise<StoredRequest> {
    const found = await store.find(accountId, requestId)
    if (found === null || found.modelId !== modelId) throw unknownRequest()
    if (found.state === 'gone') throw new RouterError('forgotten_request', 'the result of this request has aged out')
    return found
  }

  async function cancel(accountId: string, modelId: string, requestId: string): Promise<void> {
    await find(accountId, modelId, requestId)
    const now = clock.now()
    const outcome = await store.cancel(accountId, requestId, now, new Date(now.getTime() + deps.keepMs))
    if (outcome === 'not_found') throw unknownRequest()
    if (outcome === 'ended') throw new RouterError('already_completed', 'the request has ended already')
    if (outcome !== 'running') return
    // A provider that cannot stop finishes: the request then ends with its result, and may be charged.
    const running = live.find(requestId)
    if (running === null) deps.bus.publishCall({ callId: requestId, accountId, move: 'stop' })
    else running.askToStop()
  }

  return {
    submit,
    find,
    cancel,
    start: loop.start,
    [Symbol.asyncDispose]: loop.end,
  }
}

/** Takes requests out of the queue for as long as it runs. */
function openQueueLoop(deps: ModelQueueDeps) {
  const { store, clock, live } = deps
  const bell = createDoorbell()
  const ending = new AbortController()
  let loop: Promise<void> | null = null
  let unsubscribe: Unsubscribe | null = null
  // Whether anything waited at the last look: as long as nothing does, the end of a call need not wake the loop.
  let mayWait = true

  async function dispatch(accountIds: readonly string[]): Promise<void> {
    for (const accountId of accountIds) {
      let isGoing = true
      while (isGoing && !live.isClosing && !ending.signal.aborted) {
        const lease = deps.leases.next()
        const taken = await store.take(accountId, deps.rules.limitsOf(accountId), { now: clock.now(), lease })
        isGoing = taken !== null && (await start(deps, taken, lease))
      }
    }
  }

  async function look(): Promise<void> {
    if (!mayWait && !deps.mayHaveWaiting()) return
    mayWait = false
    const accountIds = await store.accountsWaiting()
    if (accountIds.length === 0) return
    mayWait = true
    const now = clock.now()
    await store.timeOut(new Date(now.getTime() - deps.maxWaitMs), now, new Date(now.getTime() + deps.keepMs))
    await dispatch(accountIds)
  }

  /** A call that ended on another node makes room, too. */
  function hear({ move }: CallMoved): void {
    if (move === 'waits') mayWait = true
    if (move !== 'stop' && mayWait) bell.ring()
  }

  async function work(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        await look()
      } catch (error) {
        const level = isStoreAway(error) ? 'debug' : 'error'
        deps.log[level]({ err: error }, 'a look at the queue of model calls failed; the next one tries again')
      }
      await bell.wait(LOOK_EVERY_MS, ending.signal)
    }
  }

  return {
    /** Something waits. */
    wake() {
      mayWait = true
      bell.ring()
    },
    start() {
      live.onEnded(() => {
        if (mayWait) bell.ring()
      })
      unsubscribe ??= deps.bus.onCall(hear)
      loop ??= work()
    },
    async end() {
      unsubscribe?.()
      ending.abort()
      bell.ring()
      await loop
    },
  }
}

async function keepBody(
  { storeBlob, maxBodyBytes }: ModelQueueDeps,
  body: Buffer,
  isValid: boolean,
): Promise<CallBody> {
  if (!isValid) return { kind: 'inline', bytes: new Uint8Array() }
  if (body.length <= INLINE_BYTES) return { kind: 'inline', bytes: new Uint8Array(body) }
  const { hash } = await storeBlob(toChunks(body), { maxBytes: maxBodyBytes })
  return { kind: 'blob', hash }
}

/** From a waiting request to a call under way. False when it waits again, so that nothing behind it can go on either. */
async function start(deps: ModelQueueDeps, taken: TakenRequest, lease: NewLease): Promise<boolean> {
  try {
    return await begin(deps, taken, lease)
  } catch (error) {
    // Whoever finds it next tries again, and gives it up when that fails too often.
    deps.leases.letGo(taken.ref)
    throw error
  }
}

async function begin(deps: ModelQueueDeps, taken: TakenRequest, lease: NewLease): Promise<boolean> {
  const { live, drive } = deps
  const own = await deps.own.find({ accountId: taken.ref.accountId, endpoints: null }, taken.modelId)
  const found = own ?? deps.catalog().find(taken.modelId)
  const provider = found === null ? null : deps.providerOf(found.model.provider)
  if (taken.isStopAsked) return refuse(deps, taken, new RouterError('cancelled', CALLED_OFF))
  if (found === null || provider === null) {
    // The model was taken away meanwhile; it may come back with the next reload, or the wait ends it.
    await deps.store.putBack(taken.ref, { isLoss: false })
    return false
  }
  const { model } = found
  // What the account may do was perhaps changed while its request waited: what counts is now.
  const { accountId } = taken.ref
  const isOwnKey = own !== null || accessWith(provider, accountId, await deps.accountKeys.now(accountId)) === 'own_key'
  const isUnpaid = !taken.isPaid && !isOwnKey && model.price.kind !== 'free'
  const listed = own === null ? model : { ...model, id: own.listedId }
  const refusal = refusalNow(deps.rules, taken.ref.accountId, listed) ?? (isUnpaid ? nobodyPays(model) : null)
  if (refusal !== null) return refuse(deps, taken, refusal)
  const body = await readCallBody(deps.blobs, taken.body)
  const input = JSON.parse(body.toString()) as JsonRecord
  // Nothing has renewed the lease while the body was read.
  if (deps.clock.now() >= lease.until && !(await deps.leases.confirm(taken.ref))) return true
  const running = new LiveCall(taken.ref, model, { hasWaiter: false, isCollectable: false, isKeyed: taken.isKeyed })
  const driven = {
    live: running,
    baseUrl: taken.baseUrl,
    isKeyed: taken.isKeyed,
    isQueued: true,
    isOwnKey,
    quote: quoteFor(model.price, input),
    trace: taken.trace,
  }
  const { plan, attemptIndex } = taken
  const ready = createReadyAgain(deps, { native: model, provider, body, input })
  const planned = plan === null ? undefined : { plan, attemptIndex, native: provider, ready }
  const work: Dispatch = { body, input, deadlineMs: SUBMIT_MS, isRepeat: false, planned }
  live.track(running, drive.submit(driven, provider, work))
  return true
}

const CALLED_OFF = 'the request was cancelled before it ran; nothing was charged'

/** Accepted while it cost nothing: nothing is set aside for it. */
function nobodyPays({ id }: Model): RouterError {
  const message = `${id} cost this account nothing when the request came, as with an own key, and does now; nothing was charged. Send it again`
  return new RouterError('not_enabled', message)
}

/** Ends a request that was taken out and never sent: its money goes back. */
async function refuse(deps: ModelQueueDeps, { ref, modelId }: TakenRequest, error: RouterError): Promise<true> {
  const at = deps.clock.now()
  const refusal = { refusal: error.refusal, message: error.message, upstreamStatus: null, failures: null }
  await deps.calls.finish(ref, {
    fate: 'keep',
    end: { kind: 'refusal', refusal },
    chargeMicros: null,
    memo: `${modelId} ${ref.id}`,
    at,
    replayUntil: null,
    expiresAt: new Date(at.getTime() + deps.keepMs),
  })
  return true
}

function unknownRequest(): RouterError {
  return new RouterError('unknown_request', 'there is no request with this id for this model')
}

async function toCallHook(
  { toHook }: Pick<ModelQueueDeps, 'toHook'>,
  { accountId, webhook }: Pick<QueueRequest, 'accountId' | 'webhook'>,
): Promise<NewHook | null> {
  if (webhook == null) return null
  try {
    return await toHook(accountId, { url: webhook, events: ['model_call.completed'], secret: null })
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'invalid_field')
      throw new RouterError('malformed', error.message)
    throw error
  }
}
