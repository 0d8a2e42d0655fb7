/**
 * The checks before a body is read, in the order of the contract: is the router on for this caller, has it allowance left,
 * does the model exist, may the caller use it, can it run here. Also what the account's calls may cost together.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { type Micros, writeUsd } from '../../../../lib/text/usd.ts'
import type { Caller, Scope } from '../../accounts/caller.ts'
import type { AccountLimits } from '../../accounts/limits/tiers.ts'
import type { LimitStore, WindowRate } from '../../credits/rate-limit.ts'
import { createChooseProviders, type ProviderWish } from '../alternates/choose-providers.ts'
import type { Routing } from '../alternates/serving.ts'
import type { CallLimits, CallStore, NewCall, Standing } from '../calls/call-store.ts'
import { MODEL_MAX_LENGTH, type Model, PROVIDER_MAX_LENGTH } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import { toCatalogId } from '../partner/partner-route.ts'
import type { Provider, ProviderAccess } from '../provider.ts'
import { RouterError, type Spend } from '../router-error.ts'
import { createOwnAccess, NO_OWN_MODELS, type OpenedModel, type OwnModel, type OwnModels } from './own-models.ts'
import { NO_PROVIDER_KEYS, type OpenedKeys, type ProviderKeyRing } from './provider-keys.ts'

export interface AccessRules {
  limitsOf(accountId: string): CallLimits
  /** Whether the router is switched on for the account at all. */
  isEnabled(accountId: string): boolean
  /** Whether the account may use the model: see it in lists, ask for its price, run it. */
  mayUse(accountId: string, model: Pick<Model, 'id' | 'entitlement'>): boolean
}

interface VisibleCatalog {
  readonly catalog: Catalog
  readonly isVisible: (model: Model) => boolean
  /** Those of the catalogue and the caller's own, in the order of their ids, after the given one. */
  page(after: string | null, limit: number): Promise<{ readonly models: readonly Model[]; readonly hasMore: boolean }>
}

export interface Access {
  /** The catalogue as this caller may see it. Rejects with not_enabled and rate. */
  catalogFor(caller: Caller): Promise<VisibleCatalog>
  /** Rejects with not_enabled, rate, unknown_model, forbidden. */
  find(caller: Caller, provider: string, model: string): Promise<Pick<OpenedModel, 'model' | 'checkInput'>>
  /** The same, for a model that is to run. */
  open(caller: Caller, provider: string, model: string): Promise<OpenedModel>
  /** With those who may serve the call, as the request wishes. Throws malformed, unknown_model. */
  choose(caller: Caller, opened: OpenedModel, wish: ProviderWish): Promise<OpenedModel>
  /** The same for a model of partner nodes, which stands in no list. */
  openForNodes(caller: Caller, model: Model): Promise<Omit<OpenedModel, 'checkInput'>>
  /** Why nobody of the account could run this model here, in words; null: it runs. */
  whyNot(caller: Caller, model: Model): Promise<string | null>
  /** Throws forbidden for a model that exists and that this account may not use. Counts no request. */
  mustBeEntitled(caller: Caller, id: string): void
  /** Whether the catalogue has a model of this id, whoever may use it. Counts no request. */
  isCatalogued(id: string): boolean
}

interface AccessDeps {
  readonly rules: AccessRules
  readonly rate: RateWindow
  readonly catalog: () => Catalog
  readonly providerOf: (name: string) => Provider | null
  /** Left out: only the models of the catalogue are found. */
  readonly own?: Pick<OwnModels, 'find' | 'list'>
  /** Why a model of the catalogue is not called by itself here; null: it is. Left out: all are. */
  readonly whyWithheld?: (model: Model) => string | null
  /** Left out: no account brings keys of its own. */
  readonly accountKeys?: Pick<ProviderKeyRing, 'of' | 'now' | 'refresh'>
  readonly routingOf: (modelId: string) => Routing
}

const NOT_SET_UP = 'its provider is not set up'
const SHOWN_LENGTH = PROVIDER_MAX_LENGTH + 1 + MODEL_MAX_LENGTH

export function createAccess(deps: AccessDeps): Access {
  const { rules, rate, catalog, providerOf, own = NO_OWN_MODELS, whyWithheld = () => null } = deps
  const { accountKeys = NO_PROVIDER_KEYS } = deps
  const chooseFor = createChooseFor(createChooseProviders({ ...deps, whyWithheld }), accountKeys)
  const toVisible = (caller: Caller) => (model: Model) => rules.mayUse(caller.accountId, model)
  const ofOwner = createOwnAccess(own, toVisible)
  const { chooseKey, toPayer } = createPayers(accountKeys)

  function refuseWhenOff({ accountId }: Caller): void {
    if (!rules.isEnabled(accountId)) throw notSwitchedOn()
  }

  function refuseUnentitled({ accountId }: Caller, model: Model): void {
    if (!rules.mayUse(accountId, model)) throw notIncluded(model)
  }

  function resolve(caller: Caller, provider: string, name: string) {
    const [id, current] = [`${provider}/${name}`, catalog()]
    const found = current.find(id)
    if (found === null) throw unknownModel(id, current.suggest(id, toVisible(caller)))
    if (found.model.state === 'retired') throw retiredModel(found.model)
    refuseUnentitled(caller, found.model)
    return found
  }

  async function findOwn(caller: Caller, id: string, scope: Scope): Promise<OwnModel | null> {
    const found = await ofOwner.find(caller, id, scope)
    if (found !== null) refuseUnentitled(caller, { ...found.model, id: found.listedId })
    return found
  }

  return {
    whyNot: createWhyNot(providerOf, whyWithheld, accountKeys),
    async catalogFor(caller) {
      refuseWhenOff(caller)
      await rate.take(caller.accountId)
      return {
        catalog: catalog(),
        isVisible: toVisible(caller),
        page: (after, limit) => ofOwner.page(caller, catalog(), { after, limit }),
      }
    },
    async find(caller, provider, name) {
      refuseWhenOff(caller)
      await rate.take(caller.accountId)
      return (await findOwn(caller, `${provider}/${name}`, 'endpoints:read')) ?? resolve(caller, provider, name)
    },
    mustBeEntitled(caller, id) {
      const model = catalog().find(id)?.model ?? null
      if (model !== null) refuseUnentitled(caller, model)
    },
    isCatalogued: (id) => catalog().find(id) !== null,
    async open(caller, provider, name) {
      refuseWhenOff(caller)
      const adapter = providerOf(provider)
      const [keys, key] = await chooseKey(caller, adapter)
      if (key !== 'own_key') await rate.take(caller.accountId)
      const found = await findOwn(caller, `${provider}/${name}`, 'endpoints:run')
      if (found !== null) return { ...found, isOwnKey: true }
      const { model, checkInput, chat } = resolve(caller, provider, name)
      if (adapter === null || key === 'none' || model.state !== 'released') throw notHere(model, adapter?.absence)
      const withheld = whyWithheld(model)
      if (withheld !== null) throw notHere(model, withheld)
      return { model, checkInput, chat, provider: adapter, ...toPayer(caller, { model, adapter, keys, key }) }
    },
    choose: chooseFor,
    async openForNodes(caller, model) {
      refuseWhenOff(caller)
      const adapter = providerOf(model.provider)
      const [keys, key] = await chooseKey(caller, adapter)
      if (key !== 'own_key') await rate.take(caller.accountId)
      // What is said of a model in the limits of an account holds for it wherever it is called from.
      const id = toCatalogId(model.id)
      refuseUnentitled(caller, catalog().find(id)?.model ?? { ...model, id })
      if (adapter === null || key === 'none') throw notHere(model, adapter?.absence)
      return { model, provider: adapter, ...toPayer(caller, { model, adapter, keys, key }) }
    },
  }
}

function createChooseFor(
  choose: ReturnType<typeof createChooseProviders>,
  accountKeys: NonNullable<AccessDeps['accountKeys']>,
): Access['choose'] {
  return async function chooseFor(caller: Caller, opened: OpenedModel, wish: ProviderWish): Promise<OpenedModel> {
    const { accountId } = caller
    const account = await accountKeys.of(accountId)
    const accessTo = (provider: Provider | null) => accessWith(provider, accountId, account)
    const chosen = choose({ accountId, accessTo }, opened, wish)
    const { keys } = opened
    if (keys === undefined) return chosen
    // Whose key pays decides who may serve, too.
    const again = async () => {
      const { isOwnKey, keys: now, serving } = await chooseFor(caller, { ...opened, ...(await keys.again()) }, wish)
      return { isOwnKey, keys: now, serving }
    }
    return { ...chosen, serving: chosen.serving, keys: { ...keys, again } }
  }
}

function createWhyNot(
  providerOf: AccessDeps['providerOf'],
  whyWithheld: NonNullable<AccessDeps['whyWithheld']>,
  accountKeys: NonNullable<AccessDeps['accountKeys']>,
): Access['whyNot'] {
  return async ({ accountId }, model) => {
    const adapter = providerOf(model.provider)
    const access = accessWith(adapter, accountId, await accountKeys.of(accountId))
    if (access === 'none') return adapter?.absence ?? NOT_SET_UP
    return whyWithheld(model) ?? (model.state === 'released' ? null : 'it is not released yet')
  }
}

/** Which key a call goes with, and so who pays for it. */
function createPayers(accountKeys: NonNullable<AccessDeps['accountKeys']>) {
  /** Most accounts have no keys, and are known not to: they wait for nothing. */
  async function chooseKey({ accountId }: Caller, adapter: Provider | null): Promise<[OpenedKeys, ProviderAccess]> {
    const known = accountKeys.of(accountId)
    const keys = known instanceof Promise ? await known : known
    const access = accessWith(adapter, accountId, keys)
    if (access !== 'none' || adapter?.ownKeys === undefined) return [keys, access]
    // A call that is not let in here is not judged where it would be admitted either: the key may be a moment old.
    const now = await accountKeys.now(accountId)
    return [now, accessWith(adapter, accountId, now)]
  }

  function toPayer(caller: Caller, { model, adapter, keys, key }: Chosen): Pick<OpenedModel, 'isOwnKey' | 'keys'> {
    return {
      isOwnKey: key === 'own_key',
      keys: {
        version: keys.version,
        async again() {
          const now = await accountKeys.refresh(caller.accountId)
          const keyNow = accessWith(adapter, caller.accountId, now)
          if (keyNow === 'none') throw notHere(model, adapter.absence)
          return toPayer(caller, { model, adapter, keys: now, key: keyNow })
        },
      },
    }
  }

  return { chooseKey, toPayer }
}

interface Chosen {
  readonly model: Model
  readonly adapter: Provider
  readonly keys: OpenedKeys
  readonly key: ProviderAccess
}

/** A key that the account saved itself goes before whatever the operator has set up. */
export function accessWith(adapter: Provider | null, accountId: string, keys: OpenedKeys): ProviderAccess {
  if (adapter === null) return 'none'
  return adapter.ownKeys !== undefined && keys.providers.has(adapter.name) ? 'own_key' : adapter.access(accountId)
}

/** Why an account may not run this model now, whatever it asked for earlier; null: it may. */
export function refusalNow(rules: AccessRules, accountId: string, model: Model): RouterError | null {
  if (!rules.isEnabled(accountId)) return notSwitchedOn()
  return rules.mayUse(accountId, model) ? null : notIncluded(model)
}

function notHere({ id }: Model, why: string = NOT_SET_UP): RouterError {
  return new RouterError('not_enabled', `${id} is in the catalogue and cannot be run here: ${why}`)
}

function notSwitchedOn(): RouterError {
  return new RouterError('not_enabled', 'the model router is not switched on for this account')
}

function notIncluded({ id }: Model): RouterError {
  return new RouterError('forbidden', `${id} is not included in what this account may use`)
}

function unknownModel(id: string, suggestions: readonly string[]): RouterError {
  const hint =
    suggestions.length === 0 ? 'GET /v2/models lists what there is' : `close to it: ${suggestions.join(', ')}`
  return new RouterError('unknown_model', `there is no model ${JSON.stringify(id.slice(0, SHOWN_LENGTH))}; ${hint}`)
}

function retiredModel({ id, successor }: Model): RouterError {
  const hint = successor === null ? '' : `; use ${successor}`
  return new RouterError('unknown_model', `${id} is retired${hint}`)
}

/**
 * Which models an account may use, by the patterns of its limits: `bfl/flux-pro`, `bfl/*`, `kling/v1-*`, or `*` for all. What is
 * denied is denied, whatever else allows it. A model that names an entitlement is only for accounts whose list allows it.
 */
export type MayUse = (model: Pick<Model, 'id' | 'entitlement'>) => boolean

/** Remembers its answer about each model: it stays right as long as the limits are the same. */
export function createMayUse({ allowModels, denyModels }: Pick<AccountLimits, 'allowModels' | 'denyModels'>): MayUse {
  const known = new Map<string, boolean>()
  const isIn = (patterns: readonly string[], id: string) => patterns.some((pattern) => matchesModel(pattern, id))

  function decide({ id, entitlement }: Pick<Model, 'id' | 'entitlement'>): boolean {
    if (isIn(denyModels, id)) return false
    return allowModels === null ? entitlement === null : isIn(allowModels, id)
  }

  return (model) => {
    const name = `${model.id} ${model.entitlement ?? ''}`
    const said = known.get(name) ?? decide(model)
    known.set(name, said)
    return said
  }
}

/** `*` stands for any letters within a part of the id, and alone for every id. */
export function matchesModel(pattern: string, id: string): boolean {
  if (pattern === '*') return true
  const [provider = '', name = ''] = pattern.split('/')
  const [idProvider = '', idName = ''] = id.split('/')
  return matchesPart(provider, idProvider) && matchesPart(name, idName)
}

/** Every star takes as little as possible, so the time grows with the two lengths only, whatever an operator wrote. */
function matchesPart(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return pattern === text
  const last = rest.pop() ?? ''
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let from = first.length
  for (const piece of rest) {
    const at = text.indexOf(piece, from)
    if (at < 0 || at + piece.length > text.length - last.length) return false
    from = at + piece.length
  }
  return true
}

interface RateWindow {
  /** Counts one request. Throws, or rejects with, `rate` with the time until the window ends. */
  take(accountId: string): undefined | Promise<void>
}

interface RateWindowDeps {
  readonly clock: Clock
  /** null: no limit, and no bookkeeping. */
  readonly ruleFor: (accountId: string) => WindowRate | null
}

// Above this many accounts, those whose window has ended are forgotten.
const SWEEP_ABOVE = 10_000

/**
 * So many requests of an account in a window of time. A window begins with the first request and ends as a whole, so a refusal
 * can say when the next request is allowed. It is counted in this process where that serves alone, and else in the store, so that
 * the limit holds over all processes. The rate of an account over all surfaces is in credits/rate-limit.ts.
 */
export function createRateWindow({ clock, ruleFor }: RateWindowDeps): RateWindow {
  const windows = new Map<string, { endsAt: number; used: number }>()

  function sweep(now: number): void {
    for (const [accountId, { endsAt }] of windows) if (endsAt <= now) windows.delete(accountId)
  }

  return {
    take(accountId) {
      const rule = ruleFor(accountId)
      if (rule === null) return undefined
      const now = clock.now().getTime()
      let window = windows.get(accountId)
      if (window === undefined || window.endsAt <= now) {
        if (windows.size > SWEEP_ABOVE) sweep(now)
        window = { endsAt: now + rule.windowMs, used: 0 }
        windows.set(accountId, window)
      }
      window.used++
      if (window.used > rule.allowance) throw toRefusal(rule, window.endsAt - now)
      return undefined
    },
  }
}

interface SharedRateWindowDeps extends RateWindowDeps {
  readonly store: Pick<LimitStore, 'takeWindow'>
}

/** A refusal is remembered until its window ends, so whoever keeps asking costs the store nothing. */
export function createSharedRateWindow({ store, clock, ruleFor }: SharedRateWindowDeps): RateWindow {
  const refusedUntil = new BoundedMap<string, number>(SWEEP_ABOVE)

  async function takeFrom(accountId: string, rule: WindowRate): Promise<void> {
    const now = clock.now()
    const { granted, endsAt } = await store.takeWindow(accountId, rule, 1, now)
    if (granted > 0) return
    refusedUntil.set(accountId, endsAt.getTime())
    throw toRefusal(rule, endsAt.getTime() - now.getTime())
  }

  return {
    take(accountId) {
      const rule = ruleFor(accountId)
      if (rule === null) return undefined
      const now = clock.now().getTime()
      const until = refusedUntil.get(accountId) ?? 0
      // Never for longer than a window: the rule may have become a shorter one, or the clock may have been set back.
      if (now < until && until <= now + rule.windowMs) throw toRefusal(rule, until - now)
      return takeFrom(accountId, rule)
    },
  }
}

function toRefusal({ allowance, windowMs }: WindowRate, leftMs: number): RouterError {
  return new RouterError(
    'rate',
    `${allowance} requests per ${Math.round(windowMs / 1000)} seconds are allowed; wait until the window is over`,
    { retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)) },
  )
}

// What the calls under way of an account may cost together, and the ceiling for it. Answers and refusals tell both.

/** null: the account has no limits. */
export type SpendOf = (accountId: string) => Promise<Spend | null>

interface SpendDeps {
  readonly store: Pick<CallStore, 'standing'>
  readonly rules: Pick<AccessRules, 'limitsOf'>
}

export function createSpendOf({ store, rules }: SpendDeps): SpendOf {
  // Refusals tell it too: an account that keeps being refused asks the store one question at a time.
  const asked = new Map<string, Promise<Standing>>()
  return async (accountId) => {
    const limits = rules.limitsOf(accountId)
    if (limits.ceilingMicros === null && limits.maxCalls === null) return null
    let asking = asked.get(accountId)
    if (asking === undefined) {
      asking = store.standing(accountId).finally(() => asked.delete(accountId))
      asked.set(accountId, asking)
    }
    return toSpend(limits, await asking)
  }
}

export function toSpend(limits: CallLimits, standing: Standing): Spend {
  return {
    limitMicros: limits.ceilingMicros,
    committedMicros: standing.committedMicros,
    maxCalls: limits.maxCalls,
    runningCalls: standing.runningCalls,
  }
}

/** Whether the call alone commits more than the account may: it is refused even when nothing else is under way. */
export function neverFits({ spendMicros }: Pick<NewCall, 'spendMicros'>, { ceilingMicros }: CallLimits): boolean {
  return ceilingMicros !== null && spendMicros > ceilingMicros
}

/** No retry helps, so none is asked for. */
export function toNeverFitting(spendMicros: Micros, ceilingMicros: Micros | null, spend: Spend | null): RouterError {
  const message =
    `this call alone may cost up to ${writeUsd(spendMicros)} USD, and the calls that this account has under way may commit ` +
    `${writeUsd(ceilingMicros ?? 0)} USD together: it can never fit. Ask for less, or have the ceiling of committed spend raised`
  return new RouterError('spend_exhausted', message, { spend })
}
