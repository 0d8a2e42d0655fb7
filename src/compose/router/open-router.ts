/** Opens the Model Router: catalogue, providers, calls and queue, on the store and blobs that the jobs use too. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createLocalProvider } from '../../adapters/providers/local/local-provider.ts'
import { openSentJournalFile, readBootId } from '../../adapters/sent-journal/file.ts'
import type { RouterConfig } from '../../config/blocks/router-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Engine } from '../../domain/engine/engine-port.ts'
import type { NodeModels } from '../../domain/engine/model-port.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import { createHousekeeping } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { Leadership } from '../../domain/service-nodes/leadership.ts'
import type { Store } from '../../domain/store.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { SharedAccounts } from '../open-accounts.ts'
import type { OpenedBlobs } from '../storage/open-blobs.ts'
import { type NodeParts, openNodeModels } from './node-models.ts'
import { type ModelOverrides, type OpenedModels, openModels, type ReloadOutcome } from './open-models.ts'
import { openProviders, type ProviderContext } from './open-providers.ts'
import { openOperatorFile } from './provider-settings-file.ts'
import { createRouterActions, type RouterActions, type RouterParts } from './router-actions.ts'
import { shareReloads } from './share-reloads.ts'

interface OpenRouterParts extends Pick<ProviderContext, 'signer' | 'observeExchange' | 'counts' | 'tracer'>, NodeParts {
  /** The folder of files that must outlive the process. */
  readonly directory: string
  /** Names this process among all that use the store. */
  readonly nodeId: string
  readonly bus: RouterParts['bus'] & Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'>
  /** The engine in this process, which runs workflows that are published as models; null: such models cannot run. */
  readonly engine: Engine | null
  readonly secrets: Pick<Secrets, 'providers'>
  readonly store: Store
  /** What the store showed a moment ago; null: it was not looked at. */
  readonly glance: RouterParts['glance']
  readonly opened: OpenedBlobs
  readonly assets: AssetActions
  readonly shared: Pick<SharedAccounts, 'limitsOf'> | null
  /** Whether this process does the chores of the service. */
  readonly leadership: Leadership
  readonly observer: RouterParts['observer']
  readonly toHook: RouterParts['toHook']
  readonly overrides: ModelOverrides
  readonly clock: Clock
  readonly log: Log
}

export interface Router extends AsyncDisposable {
  readonly actions: RouterActions
  /** Runs models for nodes of workflows. */
  readonly nodeModels: NodeModels
  readonly models: OpenedModels
  /** Reads the catalogue again, here and in all other processes. */
  reload(): Promise<ReloadOutcome>
  readonly cursorSecret: Uint8Array
  /** Refuses new calls. Calls under way may finish within this time; the next process continues the rest. */
  drain(withinMs: number): Promise<void>
}

const CURSOR_SECRET = 'router_cursor_secret'
const SENT_JOURNAL = 'router-sends'

export async function openRouter(config: RouterConfig, parts: OpenRouterParts): Promise<Router> {
  const { store, clock, log, overrides } = parts
  await using opening = new AsyncDisposableStack()
  const providers = opening.use(
    openProviders({
      ...parts,
      assetStore: store.assets,
      maxAssetBytes: config.maxResultBytes,
      network: overrides.network ?? null,
    }),
  )
  const models = opening.use(
    await openModels(config, {
      clock,
      log,
      builtIn: [...providers.builtIn, createLocalProvider(parts.engine), ...(overrides.providers ?? [])],
      openProvider: providers.open,
      settings: openOperatorFile(config.providersFile, providers),
      hostAssets: overrides.hostAssets ?? providers.hostAssets,
      models: overrides.models ?? [],
    }),
  )
  // A store that serves many processes keeps the journal itself: other machines could not read a file.
  const journal =
    store.sentJournal ?? opening.use(openSentJournalFile(join(parts.directory, SENT_JOURNAL), readBootId()))
  const actions = createRouterActions(config, {
    store: {
      requests: store.requests,
      limits: store.limits,
      isExclusive: store.isExclusive,
      calls: overrides.wrapCalls?.(store.calls) ?? store.calls,
    },
    models,
    blobs: parts.opened.blobs,
    assets: parts.assets,
    limitsOf: parts.shared === null ? null : parts.shared.limitsOf,
    observer: parts.observer,
    toHook: parts.toHook,
    journal,
    nodeId: parts.nodeId,
    glance: parts.glance,
    bus: parts.bus,
    tracer: parts.tracer,
    clock,
    log,
  })
  models.onReplaced(() => {
    actions.recovery.collectLeft()
    return actions.live.untilEnded()
  })
  const reloads = opening.use(shareReloads(models, parts))
  // Stored, so that cursors of the catalogue stay valid after a restart and in every process.
  const cursorSecret = Buffer.from(await store.ensureMeta(CURSOR_SECRET, makeSecret), 'base64')
  // Calls end before the providers that they use are closed.
  opening.defer(() => actions.close(0))
  opening.use(actions.queue)
  const housekeeping = opening.use(createHousekeeping({ tasks: actions.chores, leadership: parts.leadership, log }))
  // No other process has the store, so every held call is stale. With other processes, leases expire by themselves.
  if (store.isExclusive) await actions.recovery.recoverAll()
  housekeeping.start()
  const running = opening.move()
  return {
    actions,
    nodeModels: openNodeModels(parts, actions),
    models,
    reload: () => reloads.reload(),
    cursorSecret,
    drain: (withinMs) => actions.close(withinMs),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

function makeSecret(): string {
  return randomBytes(32).toString('base64')
}
