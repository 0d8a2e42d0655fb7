/** Opens the providers that models run on: the built-in ones, and one for each set of rules in the catalogue. */

import { readFile } from 'node:fs/promises'
import type { Clock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { matchesHost, type Network, privateNetwork, publicInternet } from '../../../lib/outbound/network.ts'
import { openSafeFetcher } from '../../../lib/outbound/safe-fetch.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { openDeclarativeProvider } from '../../adapters/providers/declarative/declarative-provider.ts'
import { chooseKey, compileAuth, type ProviderKey } from '../../adapters/providers/declarative/provider-context.ts'
import type { ProviderRules } from '../../adapters/providers/declarative/rules/rule-types.ts'
import {
  createFetchMedia,
  createHostAssets,
  type DownloadHeaders,
} from '../../adapters/providers/hosting/host-assets.ts'
import { createReadHostedMedia } from '../../adapters/providers/hosting/read-hosted-media.ts'
import {
  type OperatorSettings,
  ProviderSettingsError,
  readProviderSettings,
} from '../../adapters/providers/provider-settings.ts'
import { createSandboxProvider } from '../../adapters/providers/sandbox/sandbox-provider.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { AssetStore } from '../../domain/assets/asset-store.ts'
import type { ContentSigner } from '../../domain/assets/signed-url.ts'
import type { ProviderKeyRing } from '../../domain/models/access/provider-keys.ts'
import type { Routing } from '../../domain/models/alternates/serving.ts'
import type { FetchResultMedia, HostAssets } from '../../domain/models/calls/conclude-call.ts'
import type { Provider } from '../../domain/models/provider.ts'
import type { SharedCounts } from '../../domain/service-nodes/shared-counts.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { ObserveExchange } from '../metrics/call-metrics.ts'
import type { OpenProvider, OperatorFile } from './open-models.ts'

export interface ProviderContext {
  readonly secrets: Pick<Secrets, 'providers'>
  readonly assets: Pick<AssetActions, 'storeBlob' | 'openContent' | 'quota'>
  readonly assetStore: Pick<AssetStore, 'mint'>
  readonly signer: ContentSigner
  readonly observeExchange: ObserveExchange
  readonly counts: SharedCounts
  /** Keys that accounts have saved. */
  readonly accountKeys: Pick<ProviderKeyRing, 'open'>
  readonly tracer?: Tracer
  /** The largest asset that is copied. */
  readonly maxAssetBytes: number
  /** null: what the settings say. */
  readonly network: Network | null
  readonly clock: Clock
  readonly log: Log
}

interface OpenedProviders extends AsyncDisposable {
  /** Parses the operator's settings; they take effect when they are used. Throws ProviderSettingsError. */
  readonly readSettings: (text: string) => NewSettings
  /** Identifies the settings of a provider: with other settings it has to be opened again. */
  readonly settingsOf: (provider: string) => string
  /** They need no rules of their own. */
  readonly builtIn: readonly Provider[]
  readonly open: OpenProvider
  readonly hostAssets: HostAssets
  readonly fetchMedia: FetchResultMedia
  readonly routingOf: (modelId: string) => Routing
}

interface NewSettings {
  use(): void
}

export function openProviders(parts: ProviderContext): OpenedProviders {
  const { secrets, assets, signer, clock, log } = parts
  let settings = readProviderSettings(secrets.providers?.reveal() ?? null)
  // Whether private addresses may be called is decided once, when the service starts.
  const network = parts.network ?? (settings.allowsPrivateNetwork ? privateNetwork : publicInternet)
  const fetcher = openSafeFetcher(network)
  const { fetch } = fetcher
  const readHosted = createReadHostedMedia({ verify: signer.verify, openContent: assets.openContent })
  const media = {
    fetch,
    get allowedHosts() {
      return settings.mediaHosts
    },
    readHosted,
  }
  const opened = new Map<string, ProviderRules>()
  const downloadHeaders = createDownloadHeaders(() => settings, opened, parts)
  return {
    builtIn: [createSandboxProvider({ clock, sleep })],
    readSettings(text) {
      const read = readProviderSettings(text)
      return {
        use() {
          settings = read
        },
      }
    },
    settingsOf(provider) {
      const { baseUrl, concurrency, values } = settings.of(provider)
      return JSON.stringify([baseUrl, concurrency, values])
    },
    open(rules) {
      opened.set(rules.provider, rules)
      const { baseUrl, concurrency, values } = settings.of(rules.provider)
      const keyFor = (accountId: string, isOwn?: boolean) => keyOf(settings, rules.provider, { accountId, isOwn })
      const savedKeyFor = (accountId: string) => parts.accountKeys.open(accountId, rules.provider)
      const { observeExchange: observe, tracer } = parts
      const shared = { fetch, media, clock, log, tracer, observe, sleep, counts: parts.counts, random: Math.random }
      return openDeclarativeProvider(rules, { baseUrl, concurrency, values }, { ...shared, keyFor, savedKeyFor })
    },
    hostAssets: createHostAssets({
      fetch,
      storeBlob: assets.storeBlob,
      assets: parts.assetStore,
      sign: signer.sign,
      newId: newUuidV4,
      clock,
      log,
      maxBytes: parts.maxAssetBytes,
      storageLeft: assets.quota.leftFor,
      downloadHeaders,
    }),
    fetchMedia: createFetchMedia({ fetch, downloadHeaders, log }),
    routingOf: (modelId) => settings.routingOf(modelId),
    [Symbol.asyncDispose]: () => fetcher[Symbol.asyncDispose](),
  }
}

interface KeyWish {
  readonly accountId: string
  readonly isOwn?: boolean
}

function keyOf(settings: OperatorSettings, provider: string, { accountId, isOwn }: KeyWish): ProviderKey | null {
  const { key, accountKeys } = settings.of(provider)
  const own = isOwn === false ? undefined : accountKeys.get(accountId)
  if (own !== undefined) return { key: own, isOwn: true }
  return key === null || isOwn === true ? null : { key, isOwn: false }
}

/** Results of some models are downloaded from the provider's own API: its hosts get the key, no other host does. */
function createDownloadHeaders(
  settings: () => OperatorSettings,
  opened: ReadonlyMap<string, ProviderRules>,
  { clock, accountKeys }: Pick<ProviderContext, 'clock' | 'accountKeys'>,
): DownloadHeaders {
  const none = () => ({})
  return async ({ model: { provider, adapter }, ...whose }) => {
    const rules = opened.get(provider)
    if (adapter['download_with_key'] !== true || rules === undefined) return none
    const access = await chooseKey(
      {
        keyFor: (accountId, isOwn) => keyOf(settings(), provider, { accountId, isOwn }),
        savedKeyFor: (accountId) => accountKeys.open(accountId, provider),
      },
      whose,
    )
    if (access === null) return none
    const headers = compileAuth(rules.auth, clock)(access.key)
    return (url) => (matchesHost(url.hostname, rules.api_hosts) ? headers : {})
  }
}

// Reads the file with keys and settings of providers, again with every reload. Error messages never quote its content.

const UNCHANGED = { use() {} }

export function openOperatorFile(
  file: string | null,
  providers: Pick<OpenedProviders, 'readSettings' | 'settingsOf'>,
): OperatorFile {
  return {
    file,
    of: providers.settingsOf,
    async read() {
      if (file === null) return UNCHANGED
      try {
        return providers.readSettings(await readFile(file, 'utf8'))
      } catch (error) {
        if (error instanceof ProviderSettingsError) return { file, problem: error.message }
        const { code } = error as NodeJS.ErrnoException
        if (code !== undefined) return { file, problem: `the settings of providers cannot be read (${code})` }
        throw error
      }
    },
  }
}
