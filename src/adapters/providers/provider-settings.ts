/**
 * An operator's settings for providers, as one JSON object: keys, and whatever differs from the shipped rules.
 *
 *   {"bfl": {"key": "…"},
 *    "veo": {"key": "…", "settings": {"project": "my-project", "storage_uri": "gs://my-bucket/veo"}},
 *    "kling": {"key": "access:secret", "concurrency": 5, "accounts": {"<account id>": "its own key"}},
 *    "luma_2": {"key": "…", "base_url": "https://…"},
 *    "*": {"media_hosts": [".r2.cloudflarestorage.com"]}}
 *
 * Error messages name the field and never its value, since most values here are secrets.
 */
import { Ajv } from 'ajv'
import { LISTED } from '../../domain/models/alternates/choose-providers.ts'
import type { Routing } from '../../domain/models/alternates/serving.ts'
import { ROUTES } from '../../domain/models/calls/call-plan.ts'

interface OperatorProvider {
  readonly key: string | null
  readonly baseUrl: string | null
  readonly concurrency: number | null
  readonly values: Readonly<Record<string, string>>
  /** Accounts that bring a key of their own. */
  readonly accountKeys: ReadonlyMap<string, string>
}

export interface OperatorSettings {
  of(provider: string): OperatorProvider
  /** How the providers of a model are chosen. */
  routingOf(modelId: string): Routing
  /** Hosts from which pictures of an input are fetched, besides our own storage. */
  readonly mediaHosts: readonly string[]
  /** For gateways and asset servers inside a closed network: addresses from answers may then be private, over plain http. */
  readonly allowsPrivateNetwork: boolean
}

export class ProviderSettingsError extends Error {
  constructor(problem: string) {
    super(`the settings of providers: ${problem}; see docs/adapters.md`)
    this.name = 'ProviderSettingsError'
  }
}

const TEXT = { type: 'string', minLength: 1, maxLength: 8192 }
const ONE = {
  type: 'object',
  additionalProperties: false,
  properties: {
    key: { ...TEXT, pattern: '^[\\x21-\\x7e]+$' },
    base_url: { ...TEXT, pattern: '^https?://[^\\s]+$' },
    concurrency: { type: 'integer', minimum: 1, maximum: 100_000 },
    settings: { type: 'object', additionalProperties: { type: 'string', maxLength: 2048 } },
    accounts: { type: 'object', additionalProperties: { ...TEXT, pattern: '^[\\x21-\\x7e]+$' } },
  },
}
const ROUTING = {
  type: 'object',
  additionalProperties: false,
  properties: {
    by: { enum: ROUTES },
    providers: {
      type: 'array',
      items: { type: 'string', maxLength: 64 },
      minItems: 1,
      maxItems: 16,
      uniqueItems: true,
    },
    weights: { type: 'object', additionalProperties: { type: 'number', minimum: 0, maximum: 1_000_000 } },
  },
}
const ALL = {
  type: 'object',
  additionalProperties: false,
  properties: {
    media_hosts: { type: 'array', items: { type: 'string', pattern: '^\\.?[a-z0-9.-]+$' }, maxItems: 256 },
    allow_private_network: { type: 'boolean' },
    routing: { type: 'object', additionalProperties: ROUTING, maxProperties: 1000 },
  },
}
const SETTINGS = { type: 'object', properties: { '*': ALL }, additionalProperties: ONE }

interface RawProvider {
  readonly key?: string
  readonly base_url?: string
  readonly concurrency?: number
  readonly settings?: Readonly<Record<string, string>>
  readonly accounts?: Readonly<Record<string, string>>
}

interface RawEverywhere {
  readonly media_hosts?: readonly string[]
  readonly allow_private_network?: boolean
  readonly routing?: Readonly<Record<string, Partial<Routing>>>
}

/** null: nothing is configured. Throws ProviderSettingsError. */
export function readProviderSettings(text: string | null): OperatorSettings {
  const { '*': all = {}, ...providers } = text === null ? {} : parse(text)
  const everywhere = all as RawEverywhere
  const routing = new Map(Object.entries(everywhere.routing ?? {}).map(([id, raw]) => [id, { ...LISTED, ...raw }]))
  // Needed by every call, so made once.
  const known = new Map(Object.entries(providers).map(([name, raw]) => [name, toOperatorProvider(raw)]))
  return {
    of: (provider) => known.get(provider) ?? NOTHING_SET,
    routingOf: (modelId) => routing.get(modelId) ?? routing.get('*') ?? LISTED,
    mediaHosts: everywhere.media_hosts ?? [],
    allowsPrivateNetwork: everywhere.allow_private_network ?? false,
  }
}

function parse(text: string): Record<string, RawProvider> {
  const parsed = parseJson(text)
  const isSettings = new Ajv({ allErrors: true }).compile(SETTINGS)
  if (isSettings(parsed)) return parsed as Record<string, RawProvider>
  const [first] = isSettings.errors ?? []
  throw new ProviderSettingsError(`${first?.instancePath || 'the object'} ${first?.message ?? 'is wrong'}`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ProviderSettingsError('they are no JSON')
  }
}

function toOperatorProvider({ key, base_url, concurrency, settings, accounts }: RawProvider): OperatorProvider {
  return {
    key: key ?? null,
    baseUrl: base_url ?? null,
    concurrency: concurrency ?? null,
    values: settings ?? {},
    accountKeys: new Map(Object.entries(accounts ?? {})),
  }
}

const NOTHING_SET = toOperatorProvider({})
