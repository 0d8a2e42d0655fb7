/**
 * Goes on with the calls that an earlier process left unfinished. One with a handle is polled again. One whose first byte had
 * not left counts as never sent: its key is free, its request waits again. Any other may or may not have reached its provider:
 * it is never submitted again, unless the provider is known to make no second generation of it.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import type { Provider } from '../provider.ts'
import type { RequestStore } from '../queue/request-store.ts'
import type { CallProgress, CallStore, StoredRefusal, UnfinishedCall } from './call-store.ts'
import type { DriveCall } from './drive-call.ts'
import { LiveCall, type LiveCalls } from './live-calls.ts'
import type { SentJournal } from './sent-journal.ts'

interface RecoverDeps {
  readonly store: Pick<CallStore, 'unfinished' | 'finish'>
  readonly requests: Pick<RequestStore, 'putBack'>
  readonly catalog: () => Catalog
  readonly providerOf: (name: string) => Provider | null
  readonly live: LiveCalls
  readonly drive: DriveCall
  readonly journal: Pick<SentJournal, 'mayHaveLeft' | 'dropEarlier'>
  readonly clock: Clock
  readonly log: Log
}

const SLICE = 500
const DAY_MS = 24 * 60 * 60 * 1000
/** How long a generation waits for its model, which is missing from the catalogue, to come back. */
const KEEP_LEFT_MS = DAY_MS
/** How long the end of a queued call that was cut off can be asked for. */
const KEEP_END_MS = DAY_MS

type Recovery = 'collected' | 'unsent' | 'interrupted' | 'left'

interface RecoverCalls {
  /** To be called before any new call is admitted. */
  recover(): Promise<Readonly<Record<Recovery, number>>>
  /** To be called with every new catalogue: a call that waits for its model may have it again. */
  collectLeft(): void
}

export function createRecoverCalls(deps: RecoverDeps): RecoverCalls {
  const left: UnfinishedCall[] = []

  async function recoverOne(call: UnfinishedCall): Promise<Recovery> {
    if (call.progress === null) return recoverWithoutHandle(deps, call)
    if (tryCollect(deps, call)) return 'collected'
    // Its generation is there and paid for: a file that was moved by mistake must not lose it.
    const isFresh = deps.clock.now().getTime() - call.startedAt.getTime() < KEEP_LEFT_MS
    if (!isFresh) {
      await interrupt(deps, call)
      return 'interrupted'
    }
    deps.log.warn(
      { callId: call.ref.id, model: call.modelId },
      'a call waits for its model, which is not in the catalogue',
    )
    left.push(call)
    return 'left'
  }

  return {
    async recover() {
      const counts: Record<Recovery, number> = { collected: 0, unsent: 0, interrupted: 0, left: 0 }
      let after = 0
      while (true) {
        const calls = await deps.store.unfinished(after, SLICE)
        for (const call of calls) counts[await recoverOne(call)]++
        const last = calls.at(-1)
        if (last === undefined || calls.length < SLICE) break
        after = last.ref.seq
      }
      deps.journal.dropEarlier()
      if (Object.values(counts).some((count) => count > 0))
        deps.log.info(counts, 'took up model calls that were under way')
      return counts
    },
    collectLeft() {
      for (const call of left.splice(0)) if (!tryCollect(deps, call)) left.push(call)
    },
  }
}

function tryCollect(deps: RecoverDeps, call: UnfinishedCall): boolean {
  const { progress } = call
  const { model, provider } = findRunner(deps, call)
  if (progress === null || model === null || provider === null) return false
  collect(deps, { call, model, provider, progress })
  return true
}

function findRunner({ catalog, providerOf }: RecoverDeps, { modelId }: UnfinishedCall) {
  const model = catalog().find(modelId)?.model ?? null
  return { model, provider: model === null ? null : providerOf(model.provider) }
}

async function recoverWithoutHandle(deps: RecoverDeps, call: UnfinishedCall): Promise<'unsent' | 'interrupted'> {
  const { model, provider } = findRunner(deps, call)
  const isHarmless = model !== null && provider?.deduplicates(model, null) === true
  const isUnsent = !isHarmless && !deps.journal.mayHaveLeft(call.ref.id)
  if (call.isQueued && (isHarmless || isUnsent)) await deps.requests.putBack(call.ref)
  else if (isUnsent) await giveUpUnsent(deps, call)
  else await interrupt(deps, call)
  return isUnsent ? 'unsent' : 'interrupted'
}

interface Collected {
  readonly call: UnfinishedCall
  readonly model: Model
  readonly provider: Provider
  readonly progress: CallProgress
}

function collect({ live, drive }: RecoverDeps, { call, model, provider, progress }: Collected): void {
  const { ref, baseUrl, isKeyed, isQueued } = call
  const running = new LiveCall(ref, model, { hasWaiter: false, isCollectable: true, isKeyed })
  const { handle, quote, isOwnKey } = progress
  live.track(running, drive.collect({ live: running, baseUrl, isKeyed, isQueued, isOwnKey, quote }, provider, handle))
}

/** Nothing was sent and nobody waits: its money goes back and its key is free. */
async function giveUpUnsent({ store, clock }: RecoverDeps, { ref, modelId }: UnfinishedCall): Promise<void> {
  const nothing = { end: null, chargeMicros: null, replayUntil: null, expiresAt: null }
  await store.finish(ref, { ...nothing, fate: 'forget', memo: `${modelId} ${ref.id}`, at: clock.now() })
}

async function interrupt(
  { store, clock, log }: RecoverDeps,
  { ref, modelId, isQueued }: UnfinishedCall,
): Promise<void> {
  log.warn({ callId: ref.id, model: modelId }, 'a call was cut off and nobody knows whether its provider got it')
  const at = clock.now()
  const refusal: StoredRefusal = {
    refusal: 'provider_failed',
    message: 'the service stopped while the call was being handed over; whether the provider got it is not known',
    upstreamStatus: null,
    failures: null,
  }
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
