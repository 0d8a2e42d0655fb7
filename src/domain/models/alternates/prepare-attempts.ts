/** From those who may serve a call to its plan: each with the input in its own form and what it may cost, in the order to be tried. */
import { replaceText } from '../../../../lib/json/replace-text.ts'
import type { OpenedModel } from '../access/own-models.ts'
import { type CallPlan, MAX_ATTEMPTS, type PlannedAttempt } from '../calls/call-plan.ts'
import type { JsonRecord, Model } from '../catalog/model.ts'
import type { Catalog } from '../catalog/model-catalog.ts'
import { estimatePrice, holdFor, type Quote, quoteFor } from '../pricing/pricing.ts'
import type { Provider } from '../provider.ts'
import type { ValidationFailure } from '../router-error.ts'
import type { ProviderHealth } from './provider-health.ts'
import type { Candidate, Serving } from './serving.ts'
import { translateInput } from './translate-input.ts'

/** All that is needed to send an attempt. */
export interface ReadyAttempt {
  readonly model: Model
  readonly provider: Provider
  readonly body: Buffer
  readonly input: JsonRecord
  readonly quote: Quote
}

export interface PreparedCall {
  /** null: the model's own provider alone, as without any plan. */
  readonly plan: CallPlan | null
  readonly ready: readonly ReadyAttempt[]
  /** Why the provider that the request named cannot serve it. */
  readonly failures: readonly ValidationFailure[]
}

export interface PrepareDeps {
  readonly health: Pick<ProviderHealth, 'pausedMs' | 'medianMs'>
  /** From 0 to below 1. */
  readonly random: () => number
}

interface Given {
  readonly body: Buffer
  /** Valid for the model. */
  readonly input: JsonRecord
}

interface Prepared {
  readonly attempt: PlannedAttempt
  readonly ready: ReadyAttempt
}

const NOTHING: PreparedCall = { plan: null, ready: [], failures: [] }

/** Names what fails together: one model at one provider with one key. */
export function toHealthName({ modelId, keyOwner }: Pick<PlannedAttempt, 'modelId' | 'keyOwner'>, accountId: string) {
  return keyOwner === 'account' ? `${modelId} ${accountId}` : modelId
}

export function prepareCall(opened: OpenedModel, given: Given, { health, random }: PrepareDeps): PreparedCall {
  const { serving, model: native } = opened
  if (serving === undefined) return NOTHING
  const [first] = serving.candidates
  const all = serving.candidates.map((candidate) => prepareAttempt(candidate, native, given))
  const [asked] = all
  if (asked !== undefined && 'failures' in asked && first.form !== 'native')
    return { ...NOTHING, failures: asked.failures }
  const fitting = all.filter((each): each is Prepared => 'attempt' in each)
  const ordered = toOrder(serving, fitting, { health, random }).slice(0, MAX_ATTEMPTS)
  const ready = ordered.map((each) => each.ready)
  if (ordered.length === 1 && ordered[0]?.attempt.form === 'native') return NOTHING
  const attempts = ordered.map(({ attempt }) => attempt)
  return { plan: { asked: serving.asked, route: serving.routing.by, attempts }, ready, failures: [] }
}

/** The input as this candidate takes it; or why it cannot. */
function prepareAttempt(
  candidate: Candidate,
  native: Model,
  given: Given,
): Prepared | { readonly failures: readonly ValidationFailure[] } {
  const { model, provider, keyOwner, form } = candidate
  const translated = form === 'translated' ? toOwnForm(candidate, native, given) : { ...given, dropped: [] }
  if (!('body' in translated)) return translated
  const { body, input, dropped } = translated
  const isFree = keyOwner === 'account' || model.price.kind === 'free'
  const holdMicros = isFree ? null : holdFor(model.price, input)
  return {
    attempt: { provider: model.provider, modelId: model.id, form, keyOwner, holdMicros, dropped },
    ready: { model, provider, body, input, quote: quoteFor(model.price, input) },
  }
}

function toOwnForm({ sentName, ...candidate }: Candidate, native: Model, given: Given) {
  return sentName === undefined ? translateFor(candidate, native, given) : renameFor(candidate, sentName, given)
}

/** A conversation has one form everywhere; only the model is called something else. */
function renameFor({ checkInput }: Pick<Candidate, 'checkInput'>, model: string, given: Given) {
  const input = { ...given.input, model }
  const failures = checkInput(input)
  if (failures.length > 0) return { failures }
  return { body: replaceText(given.body, 'model', model), input, dropped: [] }
}

interface TranslatedInput extends Given {
  readonly dropped: readonly string[]
}

function translateFor(
  { model, checkInput }: Pick<Candidate, 'model' | 'checkInput'>,
  native: Model,
  { body }: Pick<Given, 'body'>,
): TranslatedInput | { readonly failures: readonly ValidationFailure[] } {
  const { alternate } = model
  if (alternate == null) throw new Error(`${model.id} stands in for no other model.`)
  const options = { alternate, provider: model.provider, modelField: native.input.modelField }
  const translated = translateInput(body, options)
  if (!('body' in translated)) return { failures: translated.failures }
  const failures = checkInput(translated.input)
  if (failures.length === 0) return translated
  // In the words of the model that the caller knows.
  const nameOf = (field: unknown) => alternate.fields.find(({ to }) => to[0] === field)?.from
  return {
    failures: failures.map(({ loc, msg }) => ({
      loc: ['body', ...(nameOf(loc[1])?.filter((step) => typeof step !== 'symbol') ?? [])],
      msg: `${model.provider} cannot serve this: ${msg}`,
      type: 'feature_not_supported',
    })),
  }
}

/** What the request named stays first; what is paused goes to the back. */
function toOrder(serving: Serving, prepared: readonly Prepared[], { health, random }: PrepareDeps): Prepared[] {
  const { isNamed, routing, asked } = serving
  const rest = isNamed ? prepared.filter(({ attempt }) => attempt.provider !== asked) : [...prepared]
  const sorted = SORT[routing.by](rest, { serving, health, random })
  const isPaused = ({ attempt }: Prepared) => health.pausedMs(toHealthName(attempt, '')) > 0
  const chosen = [...sorted.filter((each) => !isPaused(each)), ...sorted.filter(isPaused)]
  return isNamed ? [...prepared.filter(({ attempt }) => attempt.provider === asked), ...chosen] : chosen
}

type Sort = (prepared: Prepared[], by: PrepareDeps & { readonly serving: Serving }) => Prepared[]

const SORT: Readonly<Record<Serving['routing']['by'], Sort>> = {
  listed(prepared, { serving: { routing } }) {
    const { providers } = routing
    if (providers === null) return prepared
    const rank = ({ attempt }: Prepared) => {
      const at = providers.indexOf(attempt.provider)
      return at === -1 ? providers.length : at
    }
    return prepared.toSorted((a, b) => rank(a) - rank(b))
  },
  cheapest: (prepared) => prepared.toSorted((a, b) => likelyCost(a) - likelyCost(b)),
  fastest(prepared, { health }) {
    const timeOf = ({ attempt }: Prepared) => health.medianMs(toHealthName(attempt, '')) ?? Number.MAX_VALUE
    return prepared.toSorted((a, b) => timeOf(a) - timeOf(b))
  },
  weighted(prepared, { serving: { routing }, random }) {
    // Each draws a number whose chance to be the largest is its share of the weights.
    const drawn = prepared.map((each) => {
      const weight = routing.weights[each.attempt.provider] ?? 1
      return { each, key: weight <= 0 ? -1 : random() ** (1 / weight) }
    })
    return drawn.toSorted((a, b) => b.key - a.key).map(({ each }) => each)
  },
}

function likelyCost({ ready: { model, input }, attempt }: Prepared): number {
  const estimate = estimatePrice(model.price, input)
  if (estimate.source === 'exact') return estimate.micros
  return estimate.source === 'estimated' ? estimate.maxMicros : (attempt.holdMicros ?? 0)
}

interface ReadyAgainDeps {
  readonly catalog: () => Pick<Catalog, 'find'>
  readonly providerOf: (name: string) => Provider | null
}

/**
 * The attempts of a stored plan, when the call is sent: what the plan says counts, and what is there now. null: that model is gone, or
 * does not take the input any more.
 */
export function createReadyAgain(
  { catalog, providerOf }: ReadyAgainDeps,
  { native, provider, body, input }: Given & { readonly native: Model; readonly provider: Provider },
): (modelId: string) => ReadyAttempt | null {
  return (modelId) => {
    if (modelId === native.id) return { model: native, provider, body, input, quote: quoteFor(native.price, input) }
    const found = catalog().find(modelId)
    const serving = found === null ? null : providerOf(found.model.provider)
    if (found === null || serving === null) return null
    const { model } = found
    const isTranslated = model.alternate?.of === native.id
    const given = isTranslated ? translateFor(found, native, { body }) : { body, input }
    if (!('body' in given)) return null
    return {
      ...{ model, provider: serving },
      body: given.body,
      input: given.input,
      quote: quoteFor(model.price, given.input),
    }
  }
}
