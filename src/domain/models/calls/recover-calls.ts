/**
 * Goes on with the calls that another process left unfinished: one that is gone, or that could not renew its leases. A call with a
 * handle is polled again. One whose first byte had not left counts as never sent: its key is free, its request waits again. Any
 * other may or may not have reached its provider: it is never submitted again, unless the provider is known to make no second
 * generation of it.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { OwnModels } from '../access/own-models.ts'
import type { Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import type { Provider } from '../provider.ts'
import type { RequestStore } from '../queue/request-store.ts'
import type { CallLeases } from './call-leases.ts'
import type { CallProgress, CallStore, StoredRefusal, UnfinishedCall } from './call-store.ts'
import type { DriveCall } from './drive-call.ts'
import { type DrivenCall, LiveCall, type LiveCalls, type SentJournal } from './live-calls.ts'
import { atAttempt } from './try-attempts.ts'

interface RecoverDeps {
  readonly store: Pick<CallStore, 'takeLapsed' | 'finish'>
  readonly requests: Pick<RequestStore, 'putBack'>
  readonly catalog: () => Catalog
  readonly providerOf: (name: string) => Provider | null
  readonly own: Pick<OwnModels, 'toCollect'>
  readonly live: LiveCalls
  readonly leases: CallLeases
  readonly drive: DriveCall
  readonly journal: Pick<SentJournal, 'mayHaveLeft' | 'dropEarlier'>
  /** False: the leases of no call have lapsed, as a look at the whole store a moment ago said. */
  readonly mayHaveLapsed: () => boolean
  readonly clock: Clock
  readonly log: Log
}

// So few at a time that several nodes share what one that died has left.
const SLICE = 50
const DAY_MS = 24 * 60 * 60 * 1000
/** How long a generation waits for its model, which is missing from the catalogue, to come back. */
const KEEP_LEFT_MS = DAY_MS
/** How long the end of a queued call that was cut off can be asked for. */
const KEEP_END_MS = DAY_MS
/** A queued call whose node was lost so often, each time before it was sent, is not tried again: it may be the reason. */
const MAX_LOSSES = 3
/** How long after its lease a call of this node's own counts as left: a write that took it had its answer by then, or has none. */
const OWN_GRACE_MS = 5 * 60_000
const AT_ANY_TIME = new Date(8.64e15)

type Recovery = 'collected' | 'unsent' | 'interrupted' | 'left'

interface RecoverCalls {
  /** Takes up every call there is. To be called before this process admits any, and only where no other process can be alive. */
  recoverAll(): Promise<Readonly<Record<Recovery, number>>>
  /** Takes up some of the calls whose leases have lapsed, and gives up those that have waited too long for their models. */
  look(): Promise<void>
  /** To be called with every new catalogue: a call that waits for its model may have it again. */
  collectLeft(): void
}

export function createRecoverCalls(deps: RecoverDeps): RecoverCalls {
  const { store, leases, log } = deps
  const left = createLeftCalls(deps)

  async function recoverOne(call: UnfinishedCall): Promise<Recovery> {
    if (call.progress === null) return recoverWithoutHandle(deps, call)
    if (tryCollect(deps, call)) return 'collected'
    // Its generation is there and paid for: a file that was moved by mistake must not lose it.
    if (isTooOld(deps, call)) {
      await interrupt(deps, call, CUT_OFF)
      return 'interrupted'
    }
    log.warn({ callId: call.ref.id, model: call.modelId }, 'a call waits for its model, which is not in the catalogue')
    left.add(call)
    return 'left'
  }

  /** Until a slice is not full, or after the first slice. Throws when calls could not be dealt with: they are left to the next look. */
  async function recoverLapsed(lapsedBefore: Date, { isWhole }: { readonly isWhole: boolean }) {
    const counts: Record<Recovery, number> = { collected: 0, unsent: 0, interrupted: 0, left: 0 }
    const ownLapsedBefore = new Date(deps.clock.now().getTime() - OWN_GRACE_MS)
    const failures: unknown[] = []
    let taken: readonly UnfinishedCall[]
    do {
      const times = { lease: leases.next(), lapsedBefore, ownLapsedBefore }
      taken = await store.takeLapsed({ ...times, except: leases.held(), limit: SLICE })
      for (const call of taken) {
        try {
          counts[await recoverOne(call)]++
        } catch (error) {
          leases.letGo(call.ref)
          failures.push(error)
        }
      }
    } while (isWhole && taken.length === SLICE)
    if (Object.values(counts).some((count) => count > 0)) log.info(counts, 'took up model calls that were under way')
    if (failures.length > 0) throw new AggregateError(failures, 'model calls could not be taken up')
    return counts
  }

  return {
    async recoverAll() {
      const counts = await recoverLapsed(AT_ANY_TIME, { isWhole: true })
      deps.journal.dropEarlier()
      return counts
    },
    async look() {
      // Where the store was out of reach for this node it may have been so for others, who could not renew.
      if (deps.live.isClosing || leases.isTroubled()) return
      try {
        await left.giveUpOld()
        if (deps.mayHaveLapsed()) await recoverLapsed(deps.clock.now(), { isWhole: false })
      } catch (error) {
        leases.noteTrouble()
        throw error
      }
    },
    collectLeft: left.collect,
  }
}

const isTooOld = ({ clock }: RecoverDeps, { startedAt }: UnfinishedCall) =>
  clock.now().getTime() - startedAt.getTime() >= KEEP_LEFT_MS

/** The calls that this node keeps, and cannot collect before their models are back. */
function createLeftCalls(deps: RecoverDeps) {
  const { leases } = deps
  const left: UnfinishedCall[] = []

  function add(call: UnfinishedCall): void {
    leases.keep(call.ref)
    left.push(call)
  }

  return {
    add,
    collect(): void {
      for (const call of left.splice(0)) if (leases.take(call.ref) && !tryCollect(deps, call)) add(call)
    },
    /** A call that could not be given up waits until the next look. */
    async giveUpOld(): Promise<void> {
      for (const call of left.filter((each) => isTooOld(deps, each))) {
        left.splice(left.indexOf(call), 1)
        if (!leases.take(call.ref)) continue
        try {
          await interrupt(deps, call, CUT_OFF)
        } catch (error) {
          add(call)
          throw error
        }
      }
    },
  }
}

function tryCollect(deps: RecoverDeps, call: UnfinishedCall): boolean {
  const { progress } = call
  const { model, native, provider } = findRunner(deps, call)
  if (progress === null || model === null || native === null || provider === null) return false
  collect(deps, { call, model, native, provider, progress })
  return true
}

/** Who is asked for it: the provider of the attempt that it is at. */
function findRunner({ catalog, own, providerOf }: RecoverDeps, { modelId, plan, attemptIndex }: UnfinishedCall) {
  const native = catalog().findToRun(modelId) ?? own.toCollect(modelId)
  const servingId = plan?.attempts[attemptIndex]?.modelId ?? modelId
  const model = servingId === modelId ? native : catalog().findToRun(servingId)
  return { model, native, provider: model === null ? null : providerOf(model.provider) }
}

async function recoverWithoutHandle(deps: RecoverDeps, call: UnfinishedCall): Promise<'unsent' | 'interrupted'> {
  const { model, provider } = findRunner(deps, call)
  const isHarmless = model !== null && provider?.deduplicates(model, null) === true
  // A provider that makes no second generation is sent to without an entry, and a missing model may have been of such a one.
  const isUnrecorded = !deps.journal.mayHaveLeft(call)
  const isUnsent = isUnrecorded && !isHarmless && provider !== null
  if (call.isQueued && (isHarmless || isUnrecorded)) await queueAgain(deps, call, isUnsent)
  else if (isUnsent) await giveUpUnsent(deps, call)
  else await interrupt(deps, call, CUT_OFF)
  return isUnsent ? 'unsent' : 'interrupted'
}

async function queueAgain(deps: RecoverDeps, call: UnfinishedCall, isUnsent: boolean): Promise<void> {
  if (call.isStopAsked) await interrupt(deps, call, isUnsent ? CALLED_OFF : CUT_OFF)
  else if (call.losses + 1 >= MAX_LOSSES) await interrupt(deps, call, LOST_TOO_OFTEN)
  else await deps.requests.putBack(call.ref, { isLoss: true })
}

interface Collected {
  readonly call: UnfinishedCall
  /** That is called. */
  readonly model: Model
  /** That was asked for. */
  readonly native: Model
  readonly provider: Provider
  readonly progress: CallProgress
}

function collect({ live, drive }: RecoverDeps, { call, model, native, provider, progress }: Collected): void {
  const { ref, baseUrl, isKeyed, isQueued, trace, plan, attemptIndex } = call
  const running = new LiveCall(ref, native, { hasWaiter: false, isCollectable: true, isKeyed })
  if (call.isStopAsked) running.askToStop()
  const { handle, quote, isOwnKey, told } = progress
  if (told !== undefined) running.accept(told)
  const driven: DrivenCall = { live: running, baseUrl, isKeyed, isQueued, isOwnKey, quote, trace }
  const at = plan === null ? driven : atAttempt(driven, { model, quote }, { plan, attemptIndex })
  live.track(running, drive.collect(at, provider, handle))
}

/** Nothing was sent and no request waits: its hold is released and its key is free. */
async function giveUpUnsent({ store, clock }: RecoverDeps, { ref, modelId }: UnfinishedCall): Promise<void> {
  const nothing = { end: null, chargeMicros: null, replayUntil: null, expiresAt: null }
  await store.finish(ref, { ...nothing, fate: 'forget', memo: `${modelId} ${ref.id}`, at: clock.now() })
}

type CutOff = Pick<StoredRefusal, 'refusal' | 'message'>

const CUT_OFF: CutOff = {
  refusal: 'provider_failed',
  message: 'the service stopped while the call was being handed over; whether the provider got it is not known',
}
const CALLED_OFF: CutOff = {
  refusal: 'cancelled',
  message: 'the request was cancelled before it ran; nothing was charged',
}
const LOST_TOO_OFTEN: CutOff = {
  refusal: 'provider_failed',
  message: `the service stopped ${MAX_LOSSES} times while it was about to send the call; nothing was charged`,
}

async function interrupt(
  { store, clock, log }: RecoverDeps,
  { ref, modelId, isQueued }: UnfinishedCall,
  reason: CutOff,
): Promise<void> {
  if (reason === CUT_OFF)
    log.warn({ callId: ref.id, model: modelId }, 'a call was cut off, and it is unknown whether its provider got it')
  const at = clock.now()
  const refusal: StoredRefusal = { ...reason, upstreamStatus: null, failures: null }
  await store.finish(ref, {
    // Its key may be used again only where the provider makes no second generation of it.
    fate: isQueued ? 'keep' : 'interrupt',
    end: isQueued ? { kind: 'refusal', refusal } : null,
    chargeMicros: null,
    memo: `${modelId} ${ref.id}`,
    at,
    replayUntil: null,
    expiresAt: isQueued ? new Date(at.getTime() + KEEP_END_MS) : null,
  })
}
