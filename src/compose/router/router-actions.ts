/** Builds the operations on models: the catalogue, calls, the queue, and the periodic chores. */
import type { Clock } from '../../../lib/clock.ts'
import { createUuidV7 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { inSpan, type Tracer } from '../../../lib/tracing/tracer.ts'
import type { RouterConfig } from '../../config/blocks/router-config.ts'
import { type AccountLimits, BASE_LIMITS } from '../../domain/accounts/limits/tiers.ts'
import type { Blobs } from '../../domain/assets/blob-store.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import {
  type AccessRules,
  createAccess,
  createMayUse,
  createRateWindow,
  createSharedRateWindow,
  createSpendOf,
  type MayUse,
} from '../../domain/models/access/model-access.ts'
import { NO_OWN_MODELS, type OwnModels } from '../../domain/models/access/own-models.ts'
import type { ProviderKeyRing } from '../../domain/models/access/provider-keys.ts'
import { createProviderHealth } from '../../domain/models/alternates/provider-health.ts'
import { createCallLeases, createFollowedCalls, RENEW_EVERY_MS } from '../../domain/models/calls/call-leases.ts'
import type { CallStore } from '../../domain/models/calls/call-store.ts'
import {
  type CallObserver,
  createDriveCall,
  type DriveCall,
  type DriveDeps,
} from '../../domain/models/calls/drive-call.ts'
import { createLiveCalls, type DrivenCall, type SentJournal } from '../../domain/models/calls/live-calls.ts'
import { createRecoverCalls } from '../../domain/models/calls/recover-calls.ts'
import { createEstimateModel, createRunModel, type RunModel } from '../../domain/models/calls/run-call.ts'
import type { Model } from '../../domain/models/catalog/model.ts'
import { createModelQueue } from '../../domain/models/queue/model-queue.ts'
import type { MetaStore, Store, StoreGlance } from '../../domain/store.ts'
import type { ToHook } from '../../domain/webhooks/job-hooks.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { OpenedModels } from './open-models.ts'

export interface RouterParts {
  readonly store: Pick<Store, 'requests' | 'limits' | 'isExclusive'> & { readonly calls: CallStore }
  /** Where several processes agree on which providers are paused. */
  readonly meta: Pick<MetaStore, 'readMeta' | 'changeMeta'>
  readonly models: OpenedModels
  /** Models that belong to one account; left out: there are none. */
  readonly own?: OwnModels
  /** Why a model of the catalogue is not called by itself here; left out: all are. */
  readonly whyWithheld?: (model: Model) => string | null
  readonly accountKeys: ProviderKeyRing
  readonly blobs: Blobs
  readonly assets: Pick<AssetActions, 'storeBlob' | 'quota'>
  /** null: the local kind, which has no tiers. */
  readonly limitsOf: ((accountId: string) => AccountLimits) | null
  readonly observer: CallObserver
  readonly toHook: ToHook
  readonly journal: SentJournal
  /** Names this process among all that use the store. */
  readonly nodeId: string
  /** What the store showed a moment ago; null: it was not looked at. */
  readonly glance: () => Pick<StoreGlance, 'hasWaitingCalls' | 'hasLapsedCalls'> | null
  readonly bus: Pick<EventBus<never>, 'publishCall' | 'onCall' | 'onGap'>
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Log
}

const MINUTE_MS = 60_000
const LOOK_FOR_LAPSED_MS = 5000
const READ_PAUSES_MS = 2000
const DAY_MS = 24 * 60 * MINUTE_MS
// Calls above 5 USD get a quarter of the pool.
const COSTLY_MICROS = 5_000_000
const COSTLY_SHARE = 4
// How long an answer that contains the provider's own addresses may be replayed: they expire.
const FOREIGN_URL_MS = 5 * MINUTE_MS

export type RouterActions = ReturnType<typeof createRouterActions>

export function createRouterActions(config: RouterConfig, parts: RouterParts) {
  const { store, models, own = NO_OWN_MODELS, accountKeys, clock, log, observer, journal, bus } = parts
  const { catalog, providerOf } = models
  const rules = createRules(config, parts.limitsOf)
  const health = createProviderHealth({ store: store.isExclusive ? null : parts.meta, clock, log })
  const prepare = { health, random: Math.random }
  const { routingOf } = models
  const live = createLiveCalls((error, callId) => log.error({ err: error, callId }, 'a model call failed unexpectedly'))
  const leases = createCallLeases({ nodeId: parts.nodeId, store: store.calls, live, clock, log })
  const followed = createFollowedCalls({ store: store.calls, live })
  const { tracer } = parts
  const drive = traceDrive(openDrive(config, parts, { leases, health, stopping: live.stopping }), tracer)
  const newCalls = { clock, keyLifeMs: DAY_MS, costlyMicros: COSTLY_MICROS, ...prepare }
  const window = { clock, ruleFor: toRateRule(config) }
  const rate = store.isExclusive ? createRateWindow(window) : createSharedRateWindow({ ...window, store: store.limits })
  const shared = { rules, catalog, providerOf, own, accountKeys, live, leases, bus, drive, log }
  const queue = createModelQueue({
    ...newCalls,
    ...shared,
    store: store.requests,
    calls: store.calls,
    ...(tracer !== undefined && { currentTrace: () => tracer.active()?.context ?? null }),
    storeBlob: parts.assets.storeBlob,
    blobs: parts.blobs,
    newId: createUuidV7(() => clock.now().getTime()),
    ...{ maxWaiting: config.maxWaiting, maxWaitMs: config.maxWaitMs, maxBodyBytes: config.maxBodyBytes },
    keepMs: DAY_MS,
    toHook: parts.toHook,
    mayHaveWaiting: () => parts.glance()?.hasWaitingCalls !== false,
  })
  const recovery = createRecoverCalls({
    ...{ ...shared, store: store.calls, requests: store.requests, journal, clock },
    mayHaveLapsed: () => parts.glance()?.hasLapsedCalls !== false,
  })
  const chores = createChores(parts, { leases, health, recovery })
  /** The write that renews tells which calls are to stop. */
  const renewNow = () => void leases.renew().catch((error) => log.debug({ err: error }, 'renewing failed'))
  const unsubscribe = [
    bus.onCall(({ callId, move }) => {
      if (move === 'ended') followed.ring(callId)
      if (move === 'stop' && live.find(callId) !== null) renewNow()
    }),
    bus.onGap(renewNow),
  ]
  const accessParts = { rules, rate, catalog, providerOf, accountKeys, routingOf }
  const runParts = { live, leases, followed, access: rules, observer, drive, deadlineMs: config.deadlineMs }
  return {
    rules,
    access: createAccess({ ...accessParts, own, whyWithheld: parts.whyWithheld }),
    // The job of an endpoint could wait for the place of the very job whose node calls it, or call itself for ever.
    nodeAccess: createAccess(accessParts),
    runModel: traceRunModel(tracer, createRunModel({ ...newCalls, ...runParts, store: store.calls })),
    estimate: createEstimateModel(store.calls, prepare),
    health,
    alternatesOf: (modelId: string) =>
      catalog()
        .alternatesOf(modelId)
        .map(({ model }) => model),
    spendOf: createSpendOf({ store: store.calls, rules }),
    queue,
    live,
    chores,
    recovery,
    /** No new calls; those under way may end within this time, and the rest is left to other processes. */
    async close(withinMs: number): Promise<void> {
      for (const stop of unsubscribe) stop()
      await live.close(withinMs)
      await leases.giveBack()
    },
  }
}

interface ChoreParts {
  readonly leases: Pick<ReturnType<typeof createCallLeases>, 'renew'>
  readonly health: Pick<ReturnType<typeof createProviderHealth>, 'refresh'>
  readonly recovery: Pick<ReturnType<typeof createRecoverCalls>, 'look'>
}

function createChores(
  { store, accountKeys, clock }: Pick<RouterParts, 'store' | 'accountKeys' | 'clock'>,
  { leases, health, recovery }: ChoreParts,
): Chore[] {
  const chores: Chore[] = [
    { name: 'sweep-model-calls', runs: 'once', everyMs: 10 * MINUTE_MS, run: () => store.calls.sweep(clock.now()) },
    { name: 'renew-model-calls', runs: 'each', everyMs: RENEW_EVERY_MS, run: leases.renew },
    { name: 'reseal-provider-keys', runs: 'once', everyMs: 60 * MINUTE_MS, run: accountKeys.renew },
    { name: 'take-up-model-calls', runs: 'each', everyMs: LOOK_FOR_LAPSED_MS, run: recovery.look },
  ]
  if (!store.isExclusive)
    chores.push({ name: 'read-provider-pauses', runs: 'each', everyMs: READ_PAUSES_MS, run: health.refresh })
  return chores
}

function openDrive(
  config: RouterConfig,
  parts: RouterParts,
  calls: Pick<DriveDeps, 'leases' | 'stopping' | 'health'>,
): DriveCall {
  const { store, models, assets, clock, log, observer, journal, bus } = parts
  return createDriveCall({
    ...{ ...calls, clock, log, observer, journal, bus },
    store: store.calls,
    requests: store.requests,
    hostAssets: models.hostAssets,
    fetchMedia: models.fetchMedia,
    storeBlob: assets.storeBlob,
    quota: assets.quota,
    submitGraceMs: config.deadlineMs,
    collectForMs: DAY_MS,
    limits: {
      maxResultBytes: config.maxResultBytes,
      maxReplayBytes: config.maxReplayBytes,
      foreignUrlMs: FOREIGN_URL_MS,
      keepQueuedMs: DAY_MS,
    },
  })
}

function createRules(config: RouterConfig, tierOf: RouterParts['limitsOf']): AccessRules {
  // Limits stay the same object until something changes.
  const made = new WeakMap<AccountLimits, MayUse>()
  const mayUseOf = (limits: AccountLimits): MayUse => {
    const known = made.get(limits) ?? createMayUse(limits)
    made.set(limits, known)
    return known
  }
  return {
    limitsOf(accountId) {
      const tier = tierOf?.(accountId) ?? null
      const maxCalls = least(config.maxCalls, tier?.routerConcurrency ?? null)
      return {
        maxCalls,
        maxCostlyCalls: maxCalls === null ? null : Math.max(1, Math.floor(maxCalls / COSTLY_SHARE)),
        ceilingMicros: least(config.spendCeilingMicros, tier?.committedSpendMicros ?? null),
      }
    },
    isEnabled: (accountId) => tierOf?.(accountId).subscriptionActive ?? true,
    mayUse: (accountId, model) => mayUseOf(tierOf?.(accountId) ?? BASE_LIMITS)(model),
  }
}

function least(a: number | null, b: number | null): number | null {
  if (a === null) return b
  return b === null ? a : Math.min(a, b)
}

function toRateRule({ requestsPerMinute }: RouterConfig) {
  const rule = requestsPerMinute === null ? null : { allowance: requestsPerMinute, windowMs: MINUTE_MS }
  return () => rule
}

/** Calls of models as spans: what the caller waits for, and what is done with the provider, which may go on without a caller. */
function traceRunModel(tracer: Tracer | undefined, run: RunModel): RunModel {
  if (tracer === undefined) return run
  return (request) => {
    const { opened, requestId } = request
    return inSpan(tracer, 'model.call', { attributes: toAttributes(requestId, opened.model) }, async (span) => {
      const answer = await run(request)
      span.set({ 'atelier.call.end': answer.end.kind, 'atelier.call.replay': answer.isReplay })
      return answer
    })
  }
}

/** A call out of the queue continues the trace of its submit; one that nobody traced then begins a trace of its own. */
function traceDrive(drive: DriveCall, tracer: Tracer | undefined): DriveCall {
  if (tracer === undefined) return drive
  const toOptions = ({ live, trace }: DrivenCall) => ({
    attributes: toAttributes(live.ref.id, live.model),
    ...(trace != null && { parent: trace }),
  })
  return {
    submit: (call, ...rest) => inSpan(tracer, 'model.submit', toOptions(call), () => drive.submit(call, ...rest)),
    collect: (call, ...rest) => inSpan(tracer, 'model.collect', toOptions(call), () => drive.collect(call, ...rest)),
  }
}

function toAttributes(callId: string, { id, provider }: Pick<Model, 'id' | 'provider'>) {
  return { 'atelier.call.id': callId, 'atelier.model': id, 'atelier.provider': provider }
}
