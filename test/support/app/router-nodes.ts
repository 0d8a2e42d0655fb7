/** Several nodes of a service that share one store of model calls, in one process: a test decides when each of them looks and renews. */
import { randomUUID } from 'node:crypto'
import { silentLog } from '../../../lib/log.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import { createCompileSchema } from '../../../src/adapters/schemas/ajv-input.ts'
import {
  createRouterActions,
  type RouterActions,
  type RouterParts,
} from '../../../src/compose/router/router-actions.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { NO_PROVIDER_KEYS } from '../../../src/domain/models/access/provider-keys.ts'
import { LISTED } from '../../../src/domain/models/alternates/choose-providers.ts'
import type { CallStore } from '../../../src/domain/models/calls/call-store.ts'
import type { SentJournal } from '../../../src/domain/models/calls/live-calls.ts'
import type { RunAnswer } from '../../../src/domain/models/calls/run-call.ts'
import type { JsonRecord, Model } from '../../../src/domain/models/catalog/model.ts'
import { createCatalog, createCheckInput } from '../../../src/domain/models/catalog/model-catalog.ts'
import { createPartnerRoutes } from '../../../src/domain/models/partner/partner-route.ts'
import type { Provider } from '../../../src/domain/models/provider.ts'
import type { RequestStore } from '../../../src/domain/models/queue/request-store.ts'
import type { Store } from '../../../src/domain/store.ts'
import type { FixedClock } from '../fixed-clock.ts'

interface RouterNodeOptions {
  readonly store: Pick<Store, 'calls' | 'requests' | 'sentJournal'>
  readonly provider: Provider
  readonly models: readonly Model[]
  readonly clock: FixedClock
  readonly settings?: Readonly<Record<string, string>>
  /** Left out: what the nodes tell each other is lost. */
  readonly bus?: ReturnType<typeof createLocalBus<never>>
  /** Where the store keeps none. */
  readonly journal?: SentJournal
  readonly wrapCalls?: (calls: CallStore) => CallStore
  readonly wrapRequests?: (requests: RequestStore) => RequestStore
  /** Left out: the store is not glanced at. */
  readonly glance?: RouterParts['glance']
}

export interface RouterNode extends AsyncDisposable {
  readonly actions: RouterActions
  /** `left`: aborted when the caller is gone. */
  run(model: string, input: JsonRecord, key?: string | null, left?: AbortSignal): Promise<RunAnswer>
  submit(model: string, input: JsonRecord): Promise<string>
  /** Takes the model away, or gives it back. */
  offer(models: readonly Model[]): void
  renew(): Promise<unknown>
  look(): Promise<unknown>
}

export const ACCOUNT = 'payer'

export function openRouterNode(options: RouterNodeOptions): RouterNode {
  const { store, provider, clock } = options
  const compileSchema = createCompileSchema()
  const toCatalog = (models: readonly Model[]) =>
    createCatalog(
      models.map((model) => ({ model, checkInput: createCheckInput(model, compileSchema) })),
      clock.now(),
    )
  let catalog = toCatalog(options.models)
  const { config } = loadConfig({ flags: { ...options.settings }, env: {}, cwd: '/' })
  const unused = () => Promise.reject(new Error('no blob is needed here'))
  const actions = createRouterActions(config.router, {
    meta: { readMeta: async () => null, changeMeta: unused },
    store: {
      calls: options.wrapCalls?.(store.calls) ?? store.calls,
      requests: options.wrapRequests?.(store.requests) ?? store.requests,
      // No rate is set here.
      limits: { takeRequests: unused, takeWindow: unused },
      isExclusive: true,
    },
    accountKeys: NO_PROVIDER_KEYS,
    toHook: unused,
    models: {
      catalog: () => catalog,
      routes: () => createPartnerRoutes([]),
      providerOf: () => provider,
      hostAssets: async ({ body }) => ({ body, hasForeignUrls: false }),
      fetchMedia: async () => null,
      routingOf: () => LISTED,
      reload: unused,
      watchFolders() {},
      onReplaced() {},
      [Symbol.asyncDispose]: async () => {},
    },
    blobs: { open: unused } as never,
    assets: {
      storeBlob: unused,
      quota: {
        leftFor: async () => Number.POSITIVE_INFINITY,
        mustHaveRoom: unused,
        admit: unused,
        noteUnrecorded() {},
      },
    },
    limitsOf: null,
    observer: { ended() {}, answered() {}, polled() {}, attempted() {}, fellBack() {}, unresolved() {} },

    glance: options.glance ?? (() => null),
    journal: options.journal ?? store.sentJournal ?? createMemoryJournal(),
    nodeId: randomUUID(),
    bus: options.bus ?? createLocalBus<never>({ log: silentLog }),
    clock,
    log: silentLog,
  })
  const chore = (name: string) => actions.chores.find((task) => task.name === name)?.run(new AbortController().signal)
  const request = async (model: string, input: JsonRecord, key: string | null) => {
    const [name, rest] = model.split('/')
    const caller = { accountId: ACCOUNT, keyId: null, scopes: null, endpoints: null }
    return {
      opened: await actions.access.open(caller, name, rest),
      accountId: ACCOUNT,
      key,
      fingerprint: JSON.stringify([model, input]),
      body: Buffer.from(JSON.stringify(input)),
      input,
      baseUrl: 'http://here',
    }
  }
  return {
    actions,
    run: async (model, input, key = null, left) =>
      actions.runModel({
        ...(await request(model, input, key)),
        requestId: randomUUID(),
        listener: { isConnected: () => left?.aborted !== true, ...(left && { left }) },
      }),
    submit: async (model, input) => (await actions.queue.submit(await request(model, input, null))).requestId,
    offer(models) {
      catalog = toCatalog(models)
      actions.recovery.collectLeft()
    },
    renew: async () => chore('renew-model-calls'),
    look: async () => chore('take-up-model-calls'),
    async [Symbol.asyncDispose]() {
      await actions.queue[Symbol.asyncDispose]()
      await actions.close(0)
    },
  }
}

/** A journal that all nodes of a test share, as if it were in the store. */
export function createMemoryJournal(): SentJournal {
  const sent = new Set<string>()
  return {
    record: ({ id }) => void sent.add(id),
    retract: ({ id }) => void sent.delete(id),
    forget() {},
    mayHaveLeft: ({ ref }) => sent.has(ref.id),
    dropEarlier() {},
  }
}
