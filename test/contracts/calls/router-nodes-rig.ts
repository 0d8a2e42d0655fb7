/** Two nodes of one service that drive model calls over one store, with a provider that does what a test tells it. */
import assert from 'node:assert/strict'
import { silentLog } from '../../../lib/log.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../../src/domain/models/calls/run-call.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import type { Store, StoreGlance } from '../../../src/domain/store.ts'
import { ACCOUNT, createMemoryJournal, openRouterNode, type RouterNode } from '../../support/app/router-nodes.ts'
import { PRICE } from '../../support/app/start-router.ts'
import { createFixedClock, type FixedClock } from '../../support/fixed-clock.ts'
import { createFakeProvider, type FakeProvider, fakeModel } from '../../support/providers/fake-provider.ts'

export type SharedStore = Pick<Store, 'calls' | 'requests' | 'ledger' | 'sentJournal'>

export interface NodesUnderTest {
  /** The same store twice, as two nodes have it open, with an account `payer` that has one dollar. */
  open(clock: FixedClock): Promise<{ readonly stores: readonly [SharedStore, SharedStore] } & AsyncDisposable>
}

export const MODELS = [
  fakeModel('fake/direct', { price: PRICE }),
  fakeModel('fake/polled', { price: PRICE, returns: 'poll' }),
  fakeModel('fake/free'),
]
export const COST = 40_000
export const DOLLAR = 1_000_000
export const LAPSE_MS = 31_000

interface Nodes {
  readonly a: RouterNode
  readonly b: RouterNode
  readonly provider: FakeProvider
  readonly clock: FixedClock
  readonly store: SharedStore
}

interface NodesOptions {
  readonly deduplicates?: boolean
  /** Of the first node. */
  readonly wrapCalls?: (calls: CallStore) => CallStore
  readonly wrapRequests?: (requests: RequestStore) => RequestStore
  /** Of both. */
  readonly glance?: () => Pick<StoreGlance, 'hasWaitingCalls' | 'hasLapsedCalls'> | null
  readonly settings?: Readonly<Record<string, string>>
}

export function resultOf({ end }: RunAnswer): unknown {
  assert.ok(end.kind === 'result' && end.result.body.kind === 'inline')
  return JSON.parse(Buffer.from(end.result.body.bytes).toString())
}

export type WithNodes = (options: NodesOptions, body: (nodes: Nodes) => Promise<void>) => Promise<void>

export function createWithNodes({ open }: NodesUnderTest): WithNodes {
  return async function withNodes(options, body) {
    const clock = createFixedClock()
    await using opened = await open(clock)
    const provider = createFakeProvider({ deduplicates: options.deduplicates ?? false })
    const bus = createLocalBus<never>({ log: silentLog })
    const shared = {
      provider,
      models: MODELS,
      clock,
      bus,
      journal: opened.stores[0].sentJournal ?? createMemoryJournal(),
      ...(options.glance && { glance: options.glance }),
    }
    const settings = options.settings ?? {}
    const { wrapCalls, wrapRequests } = options
    await using a = openRouterNode({ ...shared, settings, store: opened.stores[0], wrapCalls, wrapRequests })
    await using b = openRouterNode({ ...shared, settings, store: opened.stores[1] })
    await body({ a, b, provider, clock, store: opened.stores[0] })
    assert.deepEqual((await opened.stores[0].ledger.check()).faults, [])
  }
}

export const available = async ({ ledger }: SharedStore) => (await ledger.balance(ACCOUNT))?.available
