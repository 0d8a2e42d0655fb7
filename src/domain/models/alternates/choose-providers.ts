/** Which providers may serve a call of a model: what the caller asked for, what the operator allows, and what the account may use. */
import type { OpenedModel } from '../access/own-models.ts'
import type { Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import type { Provider } from '../provider.ts'
import { RouterError } from '../router-error.ts'
import type { Candidate, Routing, Serving } from './serving.ts'

/** What a request says about providers. */
export interface ProviderWish {
  /** null: the model's own. */
  readonly provider: string | null
  /** The body already is in the provider's own form, and so shall be the answer. */
  readonly isStrict: boolean
  readonly mayFallBack: boolean
  /** It is called for a conversation; left out: with its own input. */
  readonly isChat?: true
}

export const NO_WISH: ProviderWish = { provider: null, isStrict: false, mayFallBack: true }

export const LISTED: Routing = { by: 'listed', providers: null, weights: {} }

interface ChooseDeps {
  readonly catalog: () => Catalog
  readonly providerOf: (name: string) => Provider | null
  readonly rules: { mayUse(accountId: string, model: Pick<Model, 'id' | 'entitlement'>): boolean }
  /** Why a model is not called by itself here; null: it is. */
  readonly whyWithheld: (model: Model) => string | null
  readonly routingOf: (modelId: string) => Routing
}

/** Throws malformed for a provider that nobody knows, and unknown_model for one that does not serve the model. */
type ChooseProviders = (account: Account, opened: OpenedModel, wish: ProviderWish) => OpenedModel

interface Account {
  readonly accountId: string
  /** With which key it reaches a provider. */
  readonly accessTo: (provider: Provider | null) => ReturnType<Provider['access']>
}

/** The model's own provider. */
const NATIVE: ReadonlySet<string> = new Set(['default', 'comfy', 'comfyui'])
/** Names that official clients know, whether or not they serve a model here. */
const KNOWN = ['fal', 'wavespeed', 'runware', 'higgsfield', 'pika', 'tencent']

export function createChooseProviders(deps: ChooseDeps): ChooseProviders {
  const { catalog, providerOf, rules, routingOf, whyWithheld } = deps

  function toCandidate(
    { accountId, accessTo }: Account,
    { model, checkInput, sentName }: Pick<Candidate, 'model' | 'checkInput' | 'sentName'>,
  ) {
    const provider = providerOf(model.provider)
    const access = accessTo(provider)
    const isHere = model.state === 'released' && rules.mayUse(accountId, model) && whyWithheld(model) === null
    if (provider === null || access === 'none' || !isHere) return null
    const keyOwner = access === 'own_key' ? ('account' as const) : ('service' as const)
    const named = sentName === undefined ? {} : { sentName }
    return { model, checkInput, provider, keyOwner, form: 'translated' as const, ...named }
  }

  function named(account: Account, opened: OpenedModel, { provider, isStrict }: ProviderWish): Candidate | null {
    const { model } = opened
    if (provider === null || NATIVE.has(provider) || provider === model.provider) return null
    const found = catalog()
      .alternatesOf(model.id)
      .find((each) => each.model.provider === provider)
    const candidate = found === undefined ? null : toCandidate(account, found)
    if (candidate !== null) return isStrict ? { ...candidate, form: 'own_form' } : candidate
    const isKnown =
      KNOWN.includes(provider) ||
      catalog()
        .all()
        .some((each) => each.provider === provider)
    if (!isKnown) {
      const known = [...NATIVE, ...KNOWN].join(', ')
      throw new RouterError('malformed', `model_provider must be one of ${known}`)
    }
    const here = found === undefined ? '' : ' here at the moment'
    const message = `${model.id} is not served by ${provider}${here}; leave model_provider out, or read its openapi.json for who serves it`
    throw new RouterError('unknown_model', message)
  }

  return function chooseProviders(account, opened, wish) {
    const { model } = opened
    const asked = named(account, opened, wish)
    const keyOwner = opened.isOwnKey ? ('account' as const) : ('service' as const)
    const native: Candidate = { ...opened, keyOwner, form: 'native' }
    const first = asked ?? native
    // A fallback moves the cost to another provider: never away from, and never onto, a key that the account brought.
    const mayFallBack = wish.mayFallBack && !wish.isStrict && first.keyOwner === 'service' && model.isOwn !== true
    const routing = routingOf(model.id)
    const isChat = wish.isChat === true
    const others = mayFallBack ? listOthers(account, first, { native, routing, isChat }) : []
    if (others.length === 0 && asked === null) return opened
    const serving: Serving = {
      asked: first.model.provider,
      isNamed: asked !== null || wish.provider !== null,
      candidates: [first, ...others],
      routing,
    }
    return { ...opened, checkInput: first.form === 'own_form' ? first.checkInput : opened.checkInput, serving }
  }

  function listOthers(
    account: Account,
    first: Candidate,
    { native, routing, isChat }: { readonly native: Candidate; readonly routing: Routing; readonly isChat: boolean },
  ): Candidate[] {
    const { id } = native.model
    const known = isChat ? catalog().chatAlternatesOf(id) : catalog().alternatesOf(id)
    const alternates = known.map((each) => toCandidate(account, each))
    const all = [native, ...alternates].filter((each) => each !== null)
    const allowed = all.filter(
      ({ model, keyOwner }) =>
        model.id !== first.model.id &&
        keyOwner === 'service' &&
        (routing.providers === null || routing.providers.includes(model.provider)),
    )
    const rank = ({ model }: Candidate) => routing.providers?.indexOf(model.provider) ?? 0
    return allowed.toSorted((a, b) => rank(a) - rank(b))
  }
}
