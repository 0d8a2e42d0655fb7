/** The input of a model in the form of a provider that stands in for its own, with every digit; or why that provider cannot serve it. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import {
  type Alternate,
  type AlternateField,
  type Conversion,
  findLeaves,
  findValue,
  type JsonPath,
  type JsonRecord,
  type Leaf,
  type LeftOut,
} from '../catalog/model.ts'
import type { ValidationFailure } from '../router-error.ts'

type Translated =
  | {
      readonly body: Buffer
      readonly input: JsonRecord
      readonly dropped: readonly string[]
      readonly failures: readonly []
    }
  | { readonly failures: readonly [ValidationFailure, ...ValidationFailure[]] }

interface TranslateOptions {
  readonly alternate: Alternate
  /** Who is to serve it, as messages name it. */
  readonly provider: string
  /** The field that names the model, which the other provider's rules fill by themselves. */
  readonly modelField: string | null
}

const UNTRANSLATABLE = 'feature_not_supported'

export function translateInput(body: Buffer, { alternate, provider, modelField }: TranslateOptions): Translated {
  const document = parseLosslessJson(body.toString('utf8'))
  if (!isJsonObject(document)) throw new Error('a model is only ever given an object')
  const failures: ValidationFailure[] = []
  const fail = (where: readonly (string | number)[], why: string) =>
    failures.push({ loc: ['body', ...where], msg: `${provider} cannot serve this: ${why}`, type: UNTRANSLATABLE })
  const covered = new Covered()
  if (modelField !== null) covered.add({ holder: document, key: modelField, value: document[modelField] })
  for (const { leaf, rule } of leavesOf(document, alternate.refuse)) fail(pathTo(document, leaf), rule.reason)
  const made: JsonObject = {}
  for (const rule of alternate.fields) {
    const problem = translateField(document, rule, { made, covered })
    if (problem !== null) fail(stepsOf(rule.from), problem)
  }
  for (const { leaf } of leavesOf(document, alternate.ignore)) covered.add(leaf)
  const dropped = alternate.drop.flatMap((rule) => {
    const leaves = findLeaves(document, rule.field).filter((leaf) => applies(rule, leaf))
    for (const leaf of leaves) covered.add(leaf)
    return leaves.length === 0 ? [] : [`${stepsOf(rule.field).join('.')} (${rule.reason})`]
  })
  for (const [name, value] of Object.entries(alternate.set)) if (!(name in made)) made[name] = value as JsonValue
  if (failures.length === 0) {
    for (const where of covered.missing(document))
      fail(where, 'it has no such field; leave it out, or use another provider')
  }
  const [first, ...others] = failures
  if (first !== undefined) return { failures: [first, ...others] }
  const text = stringifyLosslessJson(made)
  return { body: Buffer.from(text), input: JSON.parse(text) as JsonRecord, dropped, failures: [] }
}

interface Target {
  readonly made: JsonObject
  readonly covered: Covered
}

/** Why it cannot be translated; null: it was, or is not there. */
function translateField(document: JsonObject, rule: AlternateField, { made, covered }: Target): string | null {
  const found = findLeaves(document, rule.from).filter((leaf) => !isNothing(leaf.value) && fits(rule, leaf.value))
  for (const leaf of found) covered.add(leaf)
  if (found.length === 0) return null
  const values: JsonValue[] = []
  for (const { value } of found) {
    const taken = takeFrom(rule, value)
    if (isNothing(taken)) continue
    const converted = convert(rule, taken as JsonValue)
    if (converted === undefined) return `it has nothing for ${JSON.stringify(toText(taken)).slice(0, 80)}`
    if (converted !== null) values.push(converted)
  }
  if (values.length === 0) return null
  if (rule.isList) setAt(made, rule.to, values.flat() as JsonValue[])
  else if (rule.join !== null) setAt(made, rule.to, values.map(toText).join(rule.join))
  else if (values.length > 1) return 'it takes one of these only'
  else setAt(made, rule.to, values[0])
  return null
}

function takeFrom({ take, dataUri }: AlternateField, value: unknown): unknown {
  if (dataUri === null) return take.length === 0 ? value : findValue(value, take)
  const data = findValue(value, dataUri.data)
  return isNothing(data) ? null : `data:${toText(findValue(value, dataUri.type))};base64,${toText(data)}`
}

function fits({ where }: AlternateField, value: unknown): boolean {
  return where.every(({ path, is }) => {
    const found = findValue(value, path)
    return !isNothing(found) && (is.includes('*') || is.includes(toText(found)))
  })
}

/** null: it is left out; undefined: it cannot be. */
function convert({ values, as }: AlternateField, value: JsonValue): JsonValue | undefined {
  const text = toText(value)
  if (values !== null && Object.hasOwn(values, text)) return values[text] as JsonValue
  if (as !== null) return CONVERT[as](text)
  return values === null ? value : undefined
}

const CONVERT: Readonly<Record<Conversion, (text: string) => JsonValue | undefined>> = {
  number: (text) => toNumber(text),
  text: (text) => text,
  first: (text) => toNumber(PAIR.exec(text)?.[1]),
  second: (text) => toNumber(PAIR.exec(text)?.[2]),
}
const PAIR = /^(\d{1,6})[x*:](\d{1,6})$/i

function toNumber(text: string | undefined): number | undefined {
  const number = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(number) ? number : undefined
}

function toText(value: unknown): string {
  if (value instanceof NumberText) return value.text
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** null and an empty text say that there is nothing. */
function isNothing(value: unknown): boolean {
  return value === null || value === undefined || value === ''
}

function setAt(made: JsonObject, path: readonly string[], value: JsonValue): void {
  let holder = made
  for (const name of path.slice(0, -1)) {
    const next = holder[name]
    if (isJsonObject(next)) holder = next
    else {
      const inner: JsonObject = {}
      holder[name] = inner
      holder = inner
    }
  }
  holder[path[path.length - 1]] = value
}

function leavesOf(document: JsonObject, rules: readonly LeftOut[]) {
  return rules.flatMap((rule) =>
    findLeaves(document, rule.field)
      .filter((leaf) => applies(rule, leaf))
      .map((leaf) => ({ leaf, rule })),
  )
}

function applies({ is }: LeftOut, { value }: Leaf): boolean {
  return !isNothing(value) && (is === null || is.includes(toText(value)))
}

/** What of a document some rule has dealt with: whole branches of it. */
class Covered {
  readonly #branches = new Map<object, Set<string>>()

  add({ holder, key }: Leaf): void {
    const keys = this.#branches.get(holder) ?? new Set<string>()
    keys.add(String(key))
    this.#branches.set(holder, keys)
  }

  /** The leaves with a value that no rule has dealt with. */
  missing(value: unknown, path: readonly (string | number)[] = []): (string | number)[][] {
    if (isNothing(value)) return []
    if (typeof value !== 'object' || value === null || value instanceof NumberText) return [[...path]]
    const keys = this.#branches.get(value)
    const entries: [string | number, unknown][] = Array.isArray(value)
      ? value.map((item, index) => [index, item])
      : Object.entries(value)
    return entries.flatMap(([key, item]) => (keys?.has(String(key)) ? [] : this.missing(item, [...path, key])))
  }
}

/** Where in the document a leaf is, which is found again by its holder. */
function pathTo(document: unknown, leaf: Leaf, path: readonly (string | number)[] = []): (string | number)[] {
  if (document === leaf.holder) return [...path, leaf.key]
  if (typeof document !== 'object' || document === null || document instanceof NumberText) return []
  for (const [key, item] of Object.entries(document)) {
    const found = pathTo(item, leaf, [...path, Array.isArray(document) ? Number(key) : key])
    if (found.length > 0) return found
  }
  return []
}

function stepsOf(path: JsonPath): (string | number)[] {
  return path.filter((step) => typeof step !== 'symbol')
}
