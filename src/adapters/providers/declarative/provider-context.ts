/** What a provider made of rules depends on, and what the steps of its calls share. */
import { createHmac } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import {
  type ExchangeAnswer,
  ExchangeError,
  type ExchangeRequest,
  openOutboundClient,
  type PhaseLimits,
} from '../../../../lib/outbound/exchange.ts'
import { matchesHost } from '../../../../lib/outbound/network.ts'
import type { SafeFetch } from '../../../../lib/outbound/safe-fetch.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { Semaphore } from '../../../../lib/waiting/semaphore.ts'
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'
import type { JsonPath, Model } from '../../../domain/models/catalog/model.ts'
import type { SharedCounts } from '../../../domain/service-nodes/shared-counts.ts'
import type { MediaDeps } from './request/build-request.ts'
import type { CompiledModel } from './rules/compile-model.ts'
import { type AuthRule, compileTemplate, type ProviderRules } from './rules/rule-types.ts'

/** What an operator says about one provider. */
export interface ProviderSettings {
  /** null: the one in the rules. */
  readonly baseUrl: string | null
  /** null: the one in the rules. */
  readonly concurrency: number | null
  readonly values: Readonly<Record<string, string>>
}

export interface ProviderKey {
  readonly key: string
  readonly isOwn: boolean
}

export type ExchangeKind = 'submit' | 'poll' | 'result' | 'cancel'

/** Told of every exchange with a provider; `status` is null when there was no answer. */
export type ObserveExchange = (exchange: {
  readonly provider: string
  readonly model: string
  readonly kind: ExchangeKind
  readonly status: number | null
  readonly milliseconds: number
}) => void

export interface DeclarativeDeps {
  /** By the settings of the operator. `isOwn`: only the account's own one, or only another one; left out: whichever there is. */
  readonly keyFor: (accountId: string, isOwn?: boolean) => ProviderKey | null
  /** The key that the account has saved itself; left out: accounts save none. */
  readonly savedKeyFor?: (accountId: string) => Promise<string | null>
  readonly fetch: SafeFetch
  readonly media: MediaDeps
  readonly clock: Clock
  readonly random: () => number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly log: Log
  readonly observe: ObserveExchange
  /** The slots of all processes. */
  readonly counts: Pick<SharedCounts, 'take' | 'giveBack' | 'tell'>
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
}

/** What the steps of all calls share. */
export interface ProviderContext {
  readonly rules: ProviderRules
  readonly client: ApiClient
  /** How many generations the provider is given at a time: many at once would be refused, which costs more than the wait. */
  readonly slots: Semaphore
  /** How many that are over all processes. */
  readonly concurrency: number
  readonly taskSlots: TaskSlots
  readonly authHeaders: AuthHeaders
  readonly settings: Readonly<Record<string, string>>
  readonly messages: readonly JsonPath[]
  readonly validationList: JsonPath | null
  modelOf(model: Model): CompiledModel
}

/** The key to go with. A call that was begun with the account's own key never goes with another one, nor the other way round. */
export async function chooseKey(
  { keyFor, savedKeyFor }: Pick<DeclarativeDeps, 'keyFor' | 'savedKeyFor'>,
  { accountId, isOwnKey }: { readonly accountId: string; readonly isOwnKey?: boolean },
): Promise<ProviderKey | null> {
  const saved = isOwnKey === true ? ((await savedKeyFor?.(accountId)) ?? null) : null
  return saved === null ? keyFor(accountId, isOwnKey) : { key: saved, isOwn: true }
}

interface TaskSlots {
  hold(task: string, giveBack: () => void, forMs: number): void
  release(task: string): void
  clear(): void
}

/**
 * The slots that running tasks hold at their provider. A task that is polled to its end gives its slot back then; one that is no
 * longer polled gives it back when its time is over.
 */
export function createTaskSlots(): TaskSlots {
  const held = new Map<string, { readonly giveBack: () => void; readonly timer: NodeJS.Timeout }>()
  function release(task: string): void {
    const slot = held.get(task)
    if (slot === undefined) return
    held.delete(task)
    clearTimeout(slot.timer)
    slot.giveBack()
  }
  return {
    hold(task, giveBack, forMs) {
      // A provider that gives the same id twice has one task, not two.
      release(task)
      const timer = setTimeout(() => release(task), Math.min(Math.max(0, forMs), MAX_TIMER_MS))
      held.set(task, { giveBack, timer })
    },
    release,
    clear() {
      for (const task of [...held.keys()]) release(task)
    },
  }
}

// Twice the number of generations, since polls and downloads run beside them.
const CONNECTIONS_PER_SLOT = 2

export interface ApiRequest extends Omit<ExchangeRequest, 'origin' | 'path'> {
  /** A path below the provider's base, or an absolute address that an answer gave. */
  readonly target: string
  /** Sent to the provider's hosts only. */
  readonly keyHeaders: Readonly<Record<string, string>>
}

interface ApiClient extends AsyncDisposable {
  call(request: ApiRequest, limits: PhaseLimits): Promise<ExchangeAnswer>
  /** Whether an address is the provider's API itself, which may see the key. */
  isApiHost(url: URL): boolean
}

interface ApiClientOptions {
  readonly baseUrl: string
  readonly apiHosts: readonly string[]
  readonly concurrency: number
  readonly fetch: SafeFetch
  /** Left out: tracing is off. */
  readonly traces?: { readonly tracer: Tracer; readonly provider: string }
}

/**
 * Calls to one provider's API. The provider's base address comes from the operator and has its own connections; every other
 * address came out of an answer, so it must be on the provider's hosts and is fetched by the guarded client. The key is sent to
 * these hosts only.
 */
export function openApiClient({ baseUrl, apiHosts, concurrency, fetch, traces }: ApiClientOptions): ApiClient {
  const base = new URL(baseUrl)
  const basePath = base.pathname.replace(/\/$/, '')
  const client = openOutboundClient({
    connectionsPerHost: concurrency * CONNECTIONS_PER_SLOT,
    ...(traces !== undefined && {
      traces: { tracer: traces.tracer, nameOf: ({ method }) => `${traces.provider} ${method}` },
    }),
  })
  const isApiHost = (url: URL) =>
    url.origin === base.origin || (url.protocol === base.protocol && matchesHost(url.hostname, apiHosts))

  function callOther({ target, method, keyHeaders, headers }: ApiRequest, limits: PhaseLimits) {
    if (method !== 'GET') throw new Error('an address from an answer is only ever read')
    const headersFor = (url: URL) => (isApiHost(url) ? { ...headers, ...keyHeaders } : headers)
    return fetch(target, { ...limits, allowedHosts: apiHosts, headersFor })
  }

  return {
    isApiHost,
    async call(request, limits) {
      const url = request.target.startsWith('/') ? null : URL.parse(request.target)
      if (url !== null && url.origin !== base.origin) return callOther(request, limits)
      const path = url === null ? `${basePath}${request.target}` : `${url.pathname}${url.search}`
      const { method, body } = request
      const headers = { ...request.headers, ...request.keyHeaders }
      const answer = await client.send({ origin: base.origin, path, method, body, headers }, limits)
      if (answer.status < 300 || answer.status >= 400) return answer
      if (!Buffer.isBuffer(answer.body)) answer.body.destroy()
      // A redirect of the API could lead anywhere, with the key in hand.
      throw new ExchangeError('broken', 'the provider redirects', { wasSent: true, status: answer.status })
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

type AuthHeaders = (key: string) => Readonly<Record<string, string>>

/** The headers that authenticate us at a provider. They are only ever sent to its API hosts. */
export function compileAuth(rules: readonly AuthRule[], clock: Clock): AuthHeaders {
  const variants = rules.map((rule) => ({
    fits: rule.key_matches === undefined ? null : new RegExp(rule.key_matches, 'u'),
    headers: Object.entries(rule.headers).map(([name, text]) => [name, compileTemplate(text)] as const),
    jwt: rule.jwt ?? null,
  }))
  // Nearly all calls go with the same key.
  let last: { readonly key: string; readonly headers: Readonly<Record<string, string>> } | null = null
  return function authHeaders(key) {
    if (last?.key === key) return last.headers
    const variant = variants.find(({ fits }) => fits === null || fits.test(key))
    if (variant === undefined) return {}
    const jwt = variant.jwt === null ? undefined : signToken(key, variant.jwt, clock)
    const headers = Object.fromEntries(variant.headers.map(([name, write]) => [name, write({ key, jwt })]))
    // A signed token is good for a short time only.
    last = variant.jwt === null ? { key, headers } : null
    return headers
  }
}

function signToken(key: string, rule: NonNullable<AuthRule['jwt']>, clock: Clock): string {
  const split = key.indexOf(':')
  const nowSeconds = Math.floor(clock.now().getTime() / 1000)
  const claims = {
    iss: key.slice(0, split),
    exp: nowSeconds + rule.lifetime_seconds,
    nbf: nowSeconds - rule.early_seconds,
  }
  const signed = `${toPart({ alg: 'HS256', typ: 'JWT' })}.${toPart(claims)}`
  return `${signed}.${createHmac('sha256', key.slice(split + 1))
    .update(signed)
    .digest('base64url')}`
}

function toPart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
