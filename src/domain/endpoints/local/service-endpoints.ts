/**
 * Models of the catalogue that are workflows (`local/*`), as endpoints that every account may call without publishing anything. They belong to
 * the service and cannot be changed; an account that publishes one of the same name has its own in that place. The number of
 * the version comes from the content of the file: another content is another version, and the former one is gone.
 */
import { GraphError } from '../../../../engine/graph/graph.ts'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { finishNow } from '../../../../lib/waiting/turns.ts'
import type { AccessRules } from '../../models/access/model-access.ts'
import { describeModel, titleOf } from '../../models/catalog/describe-model.ts'
import { isRecord, type Json, type JsonRecord, type Model } from '../../models/catalog/model.ts'
import type { Catalog, CheckInput } from '../../models/catalog/model-catalog.ts'
import type { ValidationFailure } from '../../models/router-error.ts'
import { needsOf } from '../../workflows/needs.ts'
import {
  DEFAULT_SETTINGS,
  type Endpoint,
  type EndpointInput,
  type EndpointVersion,
  type FileKind,
  type InputProblem,
  type Place,
} from '../endpoint.ts'
import { isFreeName, type Offered, type ServiceEndpoints } from '../offered.ts'
import { toWords } from '../propose/names.ts'
import { findOutputs } from '../propose/outputs.ts'
import { hashVersion } from '../versions.ts'
import { findLoaders, type LocalRules, readLocalRules } from './local-rules.ts'

export const LOCAL = 'local'

interface ServiceEndpointsDeps {
  readonly models: () => Catalog
  readonly rules: Pick<AccessRules, 'mayUse'>
  /** The classes that are known here; only the kinds of outputs depend on it. */
  readonly nodes: () => NodeCatalog
}

export function createServiceEndpoints({ models, rules, nodes }: ServiceEndpointsDeps): ServiceEndpoints {
  const described = new WeakMap<Catalog, ReadonlyMap<string, Described>>()

  function all(): ReadonlyMap<string, Described> {
    const catalog = models()
    const found = described.get(catalog) ?? describeAll(catalog)
    described.set(catalog, found)
    return found
  }

  const toOffered = (accountId: string, { model, check, ...facts }: Described): Offered => {
    const version = withOutputs(facts, nodes())
    const { number } = version
    const endpoint: Endpoint = {
      ...{ accountId, name: facts.name, title: titleOf(model), description: describeModel(model) ?? '' },
      ...{ state: 'ready', currentVersion: number, lastVersion: number, aliases: {}, revision: number },
      settings: DEFAULT_SETTINGS,
      ...{ createdAt: version.createdAt, updatedAt: version.createdAt, isOfService: true },
    }
    return { endpoint, version: { ...version, rule: toRule(check, version.inputs) } }
  }

  return {
    find(accountId, name) {
      const found = all().get(name)
      return found === undefined || !rules.mayUse(accountId, found.model) ? null : toOffered(accountId, found)
    },
    list: (accountId, { after, limit }) =>
      [...all().values()]
        .filter(({ name, model }) => (after === null || name > after) && rules.mayUse(accountId, model))
        .slice(0, limit)
        .map((each) => toOffered(accountId, each).endpoint),
    findByHash: (accountId, hash) =>
      [...all().values()]
        .filter(({ version, model }) => version.hash === hash && rules.mayUse(accountId, model))
        .map(({ name, version: { number } }) => ({ name, number })),
  }
}

interface Described {
  readonly name: string
  readonly model: Model
  readonly check: CheckInput
  readonly graph: JsonObject
  readonly version: Omit<EndpointVersion, 'outputs'>
}

/** In the order of their names. */
function describeAll(catalog: Catalog): Map<string, Described> {
  const offered = catalog.all().filter(({ provider, state, adapter }) => {
    return provider === LOCAL && state === 'released' && isRecord(adapter['workflow'])
  })
  const named = nameAll(offered.map(({ model }) => model))
  const found = offered.flatMap((model): Described[] => {
    const check = catalog.find(model.id)?.checkInput
    const rules = readLocalRules(model)
    const version = describe(model, rules, catalog.loadedAt)
    const name = named.get(model.model)
    return check === undefined || version === null || name === undefined
      ? []
      : [{ name, model, check, graph: rules.graph, version }]
  })
  return new Map(found.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((each) => [each.name, each]))
}

const MAX_NAME = 63

/** Names of models may have dots and underscores, too. One that is taken, too long or means something else gets a number. */
function nameAll(models: readonly string[]): Map<string, string> {
  const plain = models.filter(isFreeName)
  const taken = new Set(plain)
  const names = new Map(plain.map((model) => [model, model]))
  for (const model of models) {
    if (names.has(model)) continue
    const wanted = model.replaceAll(/[._]/g, '-')
    let name = wanted
    for (let number = 2; taken.has(name) || !isFreeName(name); number++)
      name = `${wanted.slice(0, MAX_NAME - String(number).length - 1)}-${number}`
    taken.add(name)
    names.set(model, name)
  }
  return names
}

const FIRST_NUMBER = 100_000_000
const NUMBERS = 900_000_000

/** null: it has a field that is no text, number, switch, choice or file, and can be called as a model only. */
function describe(model: Model, rules: LocalRules, createdAt: Date): Described['version'] | null {
  const inputs = toInputs(model, rules)
  if (inputs === null) return null
  const graph = stringifyLosslessJson(rules.graph)
  const hash = hashVersion({ graph, inputs, outputs: [] })
  const number = FIRST_NUMBER + (Number.parseInt(hash.slice('sha256:'.length).slice(0, 12), 16) % NUMBERS)
  try {
    const { classes } = needsOf(readGraph(rules.graph), [])
    const required = { classes, weights: [] }
    return { number, hash, graph, inputs, required, note: '', createdAt, createdBy: null }
  } catch (error) {
    if (error instanceof GraphError) return null
    throw error
  }
}

function withOutputs({ graph, version }: Pick<Described, 'graph' | 'version'>, catalog: NodeCatalog): EndpointVersion {
  const outputs = finishNow(findOutputs(readGraph(graph), { app: [], external: [], catalog, warnings: [] }))
  return { ...version, outputs }
}

function toInputs({ input }: Model, rules: LocalRules): EndpointInput[] | null {
  const { schema, example } = input
  const listed = schema?.['properties']
  const properties = isRecord(listed) ? listed : {}
  const required = schema?.['required']
  const places = new Map(rules.fields.map((field) => [field.name, field.places]))
  const names = new Set([...Object.keys(properties), ...places.keys(), ...rules.files.keys()])
  const inputs: EndpointInput[] = []
  for (const name of names) {
    const file = rules.files.get(name) ?? null
    const property = properties[name]
    const made = toInput({
      ...{ name, file, graph: rules.graph },
      places: file === null ? (places.get(name) ?? []) : findLoaders(rules.graph, file),
      property: isRecord(property) ? property : {},
      isRequired: Array.isArray(required) && required.includes(name),
      example: example?.[name],
    })
    if (made === null) return null
    inputs.push(made)
  }
  return inputs
}

interface Field {
  readonly name: string
  readonly graph: JsonObject
  readonly places: readonly Place[]
  /** Under which the graph loads it; null: it is no file. */
  readonly file: string | null
  readonly property: JsonRecord
  readonly isRequired: boolean
  readonly example: Json | undefined
}

// As long as a body may be expected to be.
const MAX_TEXT = 1_000_000
const LONG_TEXT = 200

/** What the schema says, and beyond it the schema itself is asked with every call. What is left out has the value of the workflow. */
function toInput({ name, file, places, property, isRequired, ...field }: Field): EndpointInput | null {
  const { title, description, minimum = null, maximum = null } = property
  const present = file === null ? valueAt(field.graph, places) : null
  const example = (field.example ?? present) as JsonValue
  const base = {
    ...{ name, places, isRequired, example },
    title: typeof title === 'string' ? title : toWords(name),
    description: typeof description === 'string' ? description : '',
  }
  if (file !== null)
    return { ...base, type: 'file', kind: kindOf(field.graph, places), maxBytes: null, maxPixels: null }
  const listed = property['enum']
  if (Array.isArray(listed))
    return { ...base, type: 'choice', default: present, choices: listed.filter((each) => each !== null), isOpen: false }
  switch (typeOf(property, [present, property['default'], field.example])) {
    case 'integer':
    case 'number': {
      const type = property['type'] === 'integer' ? 'integer' : 'number'
      return { ...base, type, default: present, minimum, maximum, step: null } as EndpointInput
    }
    case 'boolean':
      return { ...base, type: 'boolean', default: present === true }
    case 'string': {
      const maxLength = numberAt(property, 'maxLength') ?? MAX_TEXT
      const minLength = numberAt(property, 'minLength') ?? 0
      const preset = typeof present === 'string' ? present : null
      const bounds = { minLength, maxLength, pattern: patternOf(property), isMultiline: maxLength > LONG_TEXT }
      return { ...base, type: 'text', default: preset, ...bounds }
    }
    default:
      return null
  }
}

/** Without a type in the schema, that of the first value that there is. */
function typeOf({ type }: JsonRecord, values: readonly (JsonValue | Json | undefined)[]): string {
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return String(type.find((each) => each !== 'null'))
  return typeof values.find((value) => value !== undefined && value !== null)
}

/** Patterns of schemas match anywhere; those of inputs match the whole text. */
function patternOf({ pattern }: JsonRecord): string | null {
  return typeof pattern === 'string' ? (/^\^(.*)\$$/s.exec(pattern)?.[1] ?? null) : null
}

function numberAt(property: JsonRecord, name: string): number | null {
  const { [name]: value } = property
  return typeof value === 'number' ? value : null
}

/** null: another node gives it, or nothing does. */
function valueAt(graph: JsonObject, [place]: readonly Place[]): JsonValue {
  const node = place === undefined ? null : graph[place.nodeId]
  const inputs = isJsonObject(node) && isJsonObject(node['inputs']) ? node['inputs'] : {}
  const { [place?.input ?? '']: value = null } = inputs
  return Array.isArray(value) || isJsonObject(value) ? null : value
}

const KINDS: readonly (readonly [FileKind, RegExp])[] = [
  ['video', /video/i],
  ['audio', /audio|sound/i],
  ['model3d', /3d|mesh/i],
  ['image', /image|mask|picture/i],
]

/** By the class that loads it. */
function kindOf(graph: JsonObject, [place]: readonly Place[]): FileKind {
  const node = place === undefined ? null : graph[place.nodeId]
  const classType = isJsonObject(node) ? String(node['class_type']) : ''
  return KINDS.find(([, pattern]) => pattern.test(classType))?.[0] ?? 'file'
}

const REASONS: Readonly<Record<string, InputProblem['reason']>> = {
  missing: 'missing',
  one_of: 'not_one_of',
  greater_than: 'too_small',
  greater_than_equal: 'too_small',
  less_than: 'too_large',
  less_than_equal: 'too_large',
  sequence_too_short: 'too_short',
  sequence_too_long: 'too_long',
}

/** The schema of the file, as it judges calls of the model. What a file may be given as is for its input to say. */
function toRule(check: CheckInput, inputs: readonly EndpointInput[]): NonNullable<EndpointVersion['rule']> {
  const files = new Set(inputs.flatMap(({ name, type }) => (type === 'file' ? [name] : [])))
  const toProblem = ({ loc, msg, type }: ValidationFailure): InputProblem => {
    const name = String(loc[1] ?? '')
    return { name, reason: REASONS[type] ?? 'no_match', message: `${name} ${msg}`.trim() }
  }
  return (given) => {
    const plain = JSON.parse(stringifyLosslessJson(given)) as JsonRecord
    const failures = check(Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== null)))
    return failures.filter(({ loc }) => !files.has(String(loc[1]))).map(toProblem)
  }
}
