/** Opens the Model Router: catalogue, providers, calls and queue, on the store and blobs that the jobs use too. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import { createUuidV7 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import type { Sealer } from '../../../lib/sealer.ts'
import { createReadHostedMedia } from '../../adapters/providers/hosting/read-hosted-media.ts'
import { openSentJournalFile, readBootId } from '../../adapters/sent-journal/file.ts'
import type { RouterConfig } from '../../config/blocks/router-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Authenticate } from '../../domain/accounts/caller.ts'
import type { ContentSigner } from '../../domain/assets/signed-url.ts'
import type { NodeModels } from '../../domain/engine/model-port.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import { createHousekeeping } from '../../domain/jobs/sweeps/housekeeping.ts'
import { createProviderKeys, type ProviderKeys } from '../../domain/models/access/manage-provider-keys.ts'
import { createProviderKeyRing } from '../../domain/models/access/provider-keys.ts'
import { type CallBody, readCallBody } from '../../domain/models/calls/call-store.ts'
import { createNodeModels } from '../../domain/models/workflows/node-models.ts'
import type { Leadership } from '../../domain/service-nodes/leadership.ts'
import type { Store } from '../../domain/store.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { SharedAccounts } from '../open-accounts.ts'
import type { OpenedEndpoints } from '../open-endpoints.ts'
import type { OpenedBlobs } from '../storage/open-blobs.ts'
import { type ModelOverrides, type OpenedModels, openModels, type ReloadOutcome } from './open-models.ts'
import { openOperatorFile, openProviders, type ProviderContext } from './open-providers.ts'
import { createRouterActions, type RouterActions, type RouterParts } from './router-actions.ts'

interface OpenRouterParts extends Pick<ProviderContext, 'signer' | 'observeExchange' | 'counts' | 'tracer'>, NodeParts {
  /** The folder of files that must outlive the process. */
  readonly directory: string
  /** Names this process among all that use the store. */
  readonly nodeId: string
  readonly bus: RouterParts['bus'] & Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'>
  /** Endpoints as models, and the provider that runs workflows. */
  readonly endpoints: Pick<OpenedEndpoints, 'provider' | 'asModels' | 'offer' | 'whyWithheld'>
  readonly secrets: Pick<Secrets, 'providers'>
  /** null: there is nothing to seal keys of accounts with. */
  readonly sealer: Sealer | null
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
  /** What a result of a call names by an address; null: it cannot be had. */
  readonly readMedia: (
    url: string,
    of: Omit<Parameters<OpenedModels['fetchMedia']>[0], 'url'>,
  ) => Promise<Buffer | null>
  /** Keys of accounts at providers, in the accounts' own hands. */
  readonly providerKeys: ProviderKeys
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
  const accountKeys = createProviderKeyRing({ ...parts, store: store.providerKeys, isExclusive: store.isExclusive })
  const providers = opening.use(
    openProviders({
      ...parts,
      accountKeys,
      assetStore: store.assets,
      maxAssetBytes: config.maxResultBytes,
      network: overrides.network ?? null,
    }),
  )
  const models = opening.use(
    await openModels(config, {
      clock,
      log,
      builtIn: [...providers.builtIn, parts.endpoints.provider, ...(overrides.providers ?? [])],
      openProvider: providers.open,
      settings: openOperatorFile(config.providersFile, providers),
      hostAssets: overrides.hostAssets ?? providers.hostAssets,
      ...{ fetchMedia: providers.fetchMedia, routingOf: providers.routingOf },
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
    meta: store,
    own: parts.endpoints.asModels,
    whyWithheld: parts.endpoints.whyWithheld,
    accountKeys,
    blobs: parts.opened.blobs,
    assets: parts.assets,
    limitsOf: parts.shared === null ? null : parts.shared.limitsOf,
    observer: parts.observer,
    toHook: parts.toHook,
    journal,
    ...{ nodeId: parts.nodeId, glance: parts.glance, bus: parts.bus, tracer: parts.tracer },
    clock,
    log,
  })
  parts.endpoints.offer({ models: models.catalog, rules: actions.rules })
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
    ...{ models, nodeModels: openNodeModels(parts, actions), readMedia: createReadMedia(parts, models) },
    providerKeys: openProviderKeys(parts, { ring: accountKeys, providerOf: models.providerOf }),
    reload: () => reloads.reload(),
    cursorSecret,
    drain: (withinMs) => actions.close(withinMs),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

function createReadMedia(
  parts: Pick<MediaParts, 'signer' | 'assets'>,
  { fetchMedia }: Pick<OpenedModels, 'fetchMedia'>,
): Router['readMedia'] {
  const readHosted = createReadHostedMedia({ verify: parts.signer.verify, openContent: parts.assets.openContent })
  return async (url, of) => {
    const signal = AbortSignal.timeout(READ_MS)
    const parsed = URL.parse(url)
    const hosted = parsed === null ? null : await readHosted(parsed, { maxBytes: MAX_MEDIA_BYTES, signal })
    return hosted ?? (await fetchMedia({ ...of, url }, { signal }))?.bytes ?? null
  }
}

function openProviderKeys(
  { store, sealer, clock }: OpenRouterParts,
  deps: Pick<Parameters<typeof createProviderKeys>[0], 'ring' | 'providerOf'>,
): ProviderKeys {
  return createProviderKeys({
    ...{ ...deps, store: store.providerKeys, sealer, clock },
    audited: (entry) => store.audited(entry),
  })
}

function makeSecret(): string {
  return randomBytes(32).toString('base64')
}

/**
 * An operator's reload of the models holds in every process: each reads its own files again, because files belong to a machine.
 * A process that misses the notice finds changed files by itself where it watches them.
 */
interface ReloadParts {
  readonly bus: Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'>
  readonly clock: Clock
  readonly log: Log
}

interface SharedReloads extends Disposable {
  /** Reloads here, and then in all other processes. A catalogue with a fault is not announced. */
  reload(): Promise<ReloadOutcome>
}

export function shareReloads(models: Pick<OpenedModels, 'reload'>, { bus, clock, log }: ReloadParts): SharedReloads {
  let isTelling = false
  const stop = bus.onDirectory(({ directory }) => {
    if (directory !== 'models' || isTelling) return
    models.reload().catch((error: unknown) => log.error({ err: error }, 'the model catalogue could not be read again'))
  })
  return {
    async reload() {
      const outcome = await models.reload()
      if (outcome.outcome === 'refused') return outcome
      isTelling = true
      bus.publishDirectory({ directory: 'models', version: clock.now().getTime() })
      isTelling = false
      return outcome
    },
    [Symbol.dispose]: stop,
  }
}

/** Runs partner models for nodes of workflows, through the router and with the key that the job brought. */
interface NodeParts {
  readonly authenticate: Authenticate
  /** Authenticates without counting a request. */
  readonly identify: Authenticate
  /** Words of branded names. */
  readonly brands: readonly string[]
  /** The base of absolute addresses, since no request provides one here. */
  readonly baseUrl: string
}

interface MediaParts extends NodeParts {
  readonly opened: OpenedBlobs
  readonly assets: Pick<AssetActions, 'openContent'>
  readonly signer: Pick<ContentSigner, 'verify'>
}

const READ_MS = 60_000
const MAX_MEDIA_BYTES = 64 * 1024 * 1024

/** Members of `extra_data` that hold the key of a job's account. */
export function toKeyNames(brands: readonly string[]): string[] {
  return brands.map((brand) => `api_key_${brand.toLowerCase()}_org`)
}

function openNodeModels(parts: MediaParts, { nodeAccess: access, runModel, live }: RouterActions): NodeModels {
  const readHosted = createReadHostedMedia({ verify: parts.signer.verify, openContent: parts.assets.openContent })
  return createNodeModels({
    access,
    runModel,
    isStopping: () => live.isClosing,
    authenticate: parts.authenticate,
    identify: parts.identify,
    keyNames: toKeyNames(parts.brands),
    readBody: Object.assign((body: CallBody) => readCallBody(parts.opened.blobs, body), { hosted }),
    baseUrl: parts.baseUrl,
    newRequestId: createUuidV7(Date.now),
  })

  async function hosted(url: string, maxBytes: number): Promise<Buffer | null> {
    const parsed = URL.parse(url)
    if (parsed === null) return null
    return readHosted(parsed, { maxBytes, signal: AbortSignal.timeout(READ_MS) })
  }
}
