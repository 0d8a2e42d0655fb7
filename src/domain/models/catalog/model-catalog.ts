/**
 * The models as callers see them: found by id, walked page by page in the order of their ids, and suggested to whoever mistypes
 * one. A catalogue never changes; a reload makes a new one, and calls under way keep the model they began with. Each model comes with the
 * judge of its inputs.
 */
import { editDistance } from '../../../../lib/text/closest-word.ts'
import { findUnbounded } from '../pricing/pricing.ts'
import type { ValidationFailure } from '../router-error.ts'
import { type ChatForm, type JsonPath, type JsonRecord, type Model, sourcesOf } from './model.ts'

// Judges an input before anything is dispatched: the model's name in it, its schema, whether it leaves the price without any
// bound, and whether a provider may read a price into it that we do not. Everything that is wrong is listed. Schemas are compiled
// by an adapter.

const MAX_LISTED = 100
const SHOWN_LENGTH = 128

/** Empty when the input is fine. */
export type CheckInput = (input: JsonRecord) => readonly ValidationFailure[]

/** Throws with a readable reason when the schema itself is wrong. */
export type CompileSchema = (schema: JsonRecord) => CheckInput

export function createCheckInput(model: Model, compile: CompileSchema): CheckInput {
  const { schema, modelField, modelName } = model.input
  const checkSchema: CheckInput = schema === null ? () => [] : whenNeeded(() => compile(schema))
  const checkNames = createCheckNames(model)
  const check: CheckInput = (input) => {
    const failures = [...checkSchema(input), ...checkNames(input)]
    return failures.length > 0 ? failures : findUnbounded(model.price, input).map(toUnbounded)
  }
  if (modelField === null) return check
  return (input) => {
    const named = input[modelField]
    // The router fills an omitted name; null counts as omitted.
    const failures = check(named === null ? withoutField(input, modelField) : input)
    const isOther = named !== undefined && named !== null && named !== modelName
    if (!isOther) return failures
    const others = failures.filter(({ loc }) => !(loc.length === 2 && loc[1] === modelField))
    return [toOtherModel(modelField, modelName, named), ...others]
  }
}

/** Refuses names that a provider may take for one that decides model or price, and that we do not read. */
export function createCheckNames({ price, input: { modelField } }: Model, also: readonly string[] = []): CheckInput {
  const priced = sourcesOf(price).flatMap(({ from, path }) => (from === 'input' ? [path] : []))
  const named = [...also, ...(modelField === null ? [] : [modelField])].map((name) => [name])
  const names = compileNames([...priced, ...named])
  return (input) =>
    findLookalikes(names, input)
      .slice(0, MAX_LISTED)
      .map(({ at, meant }) => ({
        loc: ['body', ...at.map((step) => (typeof step === 'string' ? step.slice(0, SHOWN_LENGTH) : step))],
        msg: `is not the name that is read here: write ${meant}, or leave it out`,
        type: 'value_error',
      }))
}

/** Of a large catalogue few models are called; a schema is compiled with the first call. */
function whenNeeded(compile: () => CheckInput): CheckInput {
  let check: CheckInput | null = null
  return (input) => {
    check ??= compile()
    return check(input)
  }
}

function withoutField(input: JsonRecord, field: string): JsonRecord {
  return Object.fromEntries(Object.entries(input).filter(([name]) => name !== field))
}

function toOtherModel(field: string, expected: string, input: JsonRecord[string]): ValidationFailure {
  return {
    loc: ['body', field],
    msg: `the path names ${expected}; leave ${field} out or give the same`,
    type: 'one_of',
    ctx: { expected: [expected] },
    input,
  }
}

function toUnbounded(path: JsonPath): ValidationFailure {
  return {
    loc: ['body', ...path.filter((step) => typeof step !== 'symbol')],
    msg: 'must be a number above 0: the price of the call depends on it',
    type: 'value_error',
  }
}

/** What is read of an object, by name, and of the elements of a list. */
interface ReadNames {
  readonly members: Map<string, ReadNames>
  /** The names as a lenient reader compares them. */
  readonly folded: Map<string, string>
  elements: ReadNames | null
}

interface Lookalike {
  readonly at: readonly (string | number)[]
  readonly meant: string
}

/**
 * Names that a lenient reader of an input takes for one that we read. Many compare names without case, some without the signs
 * between words (`sampleCount`, `sample_count`, `n[]`): what we overlook would be sent on, and would decide what is made and not
 * what it costs.
 */
export function compileNames(paths: readonly JsonPath[]): ReadNames {
  const root = toNames()
  for (const path of paths) {
    let names = root
    for (const step of path) names = typeof step === 'string' ? memberOf(names, step) : elementsOf(names)
  }
  return root
}

export function findLookalikes(names: ReadNames, input: JsonRecord): readonly Lookalike[] {
  const found: Lookalike[] = []
  collect(names, input, { at: [], found })
  return found
}

/** Upper case first: there are letters with the same upper case and different lower cases. */
function foldName(name: string): string {
  return name
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}

function collect(
  names: ReadNames,
  value: unknown,
  { at, found }: { readonly at: readonly (string | number)[]; readonly found: Lookalike[] },
): void {
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    if (names.elements === null) return
    for (const [index, item] of value.entries()) collect(names.elements, item, { at: [...at, index], found })
    return
  }
  for (const [name, item] of Object.entries(value)) {
    const read = names.members.get(name)
    const meant = read === undefined ? names.folded.get(foldName(name)) : undefined
    if (read !== undefined) collect(read, item, { at: [...at, name], found })
    if (meant !== undefined) found.push({ at: [...at, name], meant })
  }
}

function toNames(): ReadNames {
  return { members: new Map(), folded: new Map(), elements: null }
}

function memberOf(names: ReadNames, name: string): ReadNames {
  const known = names.members.get(name) ?? toNames()
  names.members.set(name, known)
  names.folded.set(foldName(name), name)
  return known
}

function elementsOf(names: ReadNames): ReadNames {
  names.elements ??= toNames()
  return names.elements
}

interface JudgedModel {
  readonly model: Model
  readonly checkInput: CheckInput
}

export interface CataloguedModel extends JudgedModel {
  /** As it is called for a conversation; null: it takes none. */
  readonly chat?: (JudgedModel & Pick<ChatForm, 'defaultName' | 'standsInFor'>) | null
}

/** A model that goes on with conversations in place of another, under the provider's own name of that. */
interface ChatAlternate extends JudgedModel {
  readonly sentName: string
}

/** A model with the judge of its inputs, in each of its forms. */
export function toCatalogued(model: Model, compile: CompileSchema): CataloguedModel {
  const { chat = null } = model
  return {
    model,
    checkInput: createCheckInput(model, compile),
    chat: chat === null ? null : { ...chat, checkInput: createCheckInput(chat.model, compile) },
  }
}

interface Page {
  readonly models: readonly Model[]
  readonly hasMore: boolean
}

/** Whether this caller may see and use the model. */
type IsVisible = (model: Model) => boolean

export interface Catalog {
  readonly loadedAt: Date
  readonly size: number
  /** null for an id that is unknown, or not released yet. Retired ones are found: their answer names a successor. */
  find(id: string): CataloguedModel | null
  /** The same for a call that is under way, whatever became of its model; also for models of partner nodes, which are in no list. */
  findToRun(id: string): Model | null
  /** The models that stand in for this one, in the order of their ids. */
  alternatesOf(id: string): readonly CataloguedModel[]
  /** The same for its conversations. */
  chatAlternatesOf(id: string): readonly ChatAlternate[]
  /** Models whose ids come after `after`, which need not exist any more. */
  page(after: string | null, limit: number, isVisible: IsVisible): Page
  /** At most three ids that look like the wanted one. */
  suggest(id: string, isVisible: IsVisible): readonly string[]
  all(): readonly Model[]
}

const MAX_SUGGESTIONS = 3
// Longer texts are cut: the cost grows with the square, and nobody mistypes that much.
const MAX_COMPARED_LENGTH = 96
/** Letters of an id that may differ, as a share of its length. */
const TOLERANCE = 0.4

export function createCatalog(
  entries: readonly CataloguedModel[],
  loadedAt: Date,
  unlisted: readonly Model[] = [],
): Catalog {
  const hidden = new Map(unlisted.map((model) => [model.id, model]))
  const byId = new Map(entries.map((entry) => [entry.model.id, entry]))
  const models = entries.map(({ model }) => model).toSorted((a, b) => compare(a.id, b.id))
  const alternates = Map.groupBy(
    entries.toSorted((a, b) => compare(a.model.id, b.model.id)),
    ({ model }) => model.alternate?.of ?? '',
  )
  alternates.delete('')
  const chatAlternates = Map.groupBy(entries.flatMap(toChatAlternates), ({ of }) => of)
  const listed = models.filter(({ state }) => state === 'released' || state === 'listed')
  return {
    loadedAt,
    size: listed.length,
    find(id) {
      const found = byId.get(id)
      return found === undefined || found.model.state === 'unreleased' ? null : found
    },
    findToRun: (id) => hidden.get(id) ?? byId.get(id)?.model ?? null,
    alternatesOf: (id) => alternates.get(id) ?? [],
    chatAlternatesOf: (id) => chatAlternates.get(id) ?? [],
    page(after, limit, isVisible) {
      const start = after === null ? 0 : firstBehind(listed, after)
      const found: Model[] = []
      let at = start
      // One more than asked for, to know whether there are more.
      for (; at < listed.length && found.length <= limit; at++) if (isVisible(listed[at])) found.push(listed[at])
      return { models: found.slice(0, limit), hasMore: found.length > limit }
    },
    suggest(id, isVisible) {
      const visible = listed.filter((model) => model.state === 'released' && isVisible(model))
      return closestIds(
        id,
        visible.map((model) => model.id),
      )
    },
    all: () => models,
  }
}

function toChatAlternates({ chat }: CataloguedModel): (ChatAlternate & { readonly of: string })[] {
  if (chat == null) return []
  const { model, checkInput, standsInFor } = chat
  return Object.entries(standsInFor).map(([of, sentName]) => ({ of, model, checkInput, sentName }))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function firstBehind(models: readonly Model[], id: string): number {
  let low = 0
  let high = models.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (models[middle].id > id) high = middle
    else low = middle + 1
  }
  return low
}

/** The ids that somebody may have meant: few letters apart, or the right name under another provider. */
function closestIds(wanted: string, ids: readonly string[]): string[] {
  const text = wanted.toLowerCase().slice(0, MAX_COMPARED_LENGTH)
  return ids
    .map((id) => ({ id, distance: distanceTo(text, id) }))
    .filter(({ id, distance }) => distance <= Math.max(text.length, id.length) * TOLERANCE)
    .toSorted((a, b) => a.distance - b.distance || compare(a.id, b.id))
    .slice(0, MAX_SUGGESTIONS)
    .map(({ id }) => id)
}

/** Between the whole ids; nearer where the model's own name is right or cut short, because the provider is easily forgotten. */
function distanceTo(wanted: string, id: string): number {
  const [, model = ''] = id.split('/', 2)
  const name = wanted.slice(wanted.indexOf('/') + 1)
  if (name !== '' && model === name) return 1
  if (name.length > 3 && (model.startsWith(name) || name.startsWith(model))) return 2
  return editDistance(wanted, id)
}
