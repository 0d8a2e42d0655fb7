/** A model's rules in executable form: paths, patterns and templates are parsed once, and errors in them are found here. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { type JsonPath, type JsonRecord, type Model, readJsonPath } from '../../../../domain/models/catalog/model.ts'
import { compileNames, findLookalikes } from '../../../../domain/models/catalog/model-catalog.ts'
import {
  type BodyRules,
  type Classify,
  compileConditions,
  compileJsonTemplate,
  compileOutcomes,
  compileTemplate,
  encodeForPath,
  type FetchRule,
  type InputTest,
  type ModelRules,
  namesIn,
  type OperationRules,
  type ProviderRules,
  type RefuseRule,
  type TaskRules,
  type Template,
  type TemplateValues,
} from './rule-types.ts'

export interface CompiledFetch {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The name of the kept value that is the address; where it is missing, the path serves. */
  readonly urlFrom: string | null
  readonly path: Template | null
  readonly body: ((values: TemplateValues) => unknown) | null
}

export interface CompiledTask {
  readonly rules: TaskRules
  readonly id: JsonPath
  readonly keep: readonly (readonly [name: string, path: JsonPath])[]
  readonly poll: CompiledFetch
  readonly states: readonly (JsonPath | 'http_status')[]
  readonly meanings: ReadonlyMap<string, TaskState>
  readonly result:
    | (CompiledFetch & { readonly take: readonly (readonly [string, JsonPath])[]; readonly mergeAs: string | null })
    | null
  readonly cancel: CompiledFetch | null
  readonly find: CompiledFetch | null
}

export type TaskState = 'success' | 'failed' | 'policy' | 'timeout'
const TASK_STATES = ['success', 'failed', 'policy', 'timeout'] as const

export interface CompiledOperation {
  readonly rules: OperationRules
  readonly fits: InputTest
  /** Whether anything of a call stands in what is sent, other than its body. */
  readonly hasTemplates: boolean
  readonly path: Template
  readonly headers: readonly (readonly [name: string, write: Template])[]
  readonly body: BodyWriter
  readonly media: readonly (readonly [rule: NonNullable<OperationRules['media']>[number], path: JsonPath])[]
  readonly refuse: readonly (RefuseRule & { readonly where: JsonPath; readonly prefix: Template })[]
  readonly task: CompiledTask | null
}

export interface CompiledModel {
  readonly rules: ModelRules
  readonly operations: readonly CompiledOperation[]
  readonly assets: readonly JsonPath[]
  readonly classify: Classify
  readonly usage: JsonPath | null
  readonly cost: { readonly path: JsonPath; readonly kept: string | null; readonly microsPerUnit: number } | null
  readonly knownFields: ReadonlySet<string> | null
}

/** Throws with words about what is wrong. */
export function compileModel(model: Model, provider: ProviderRules): CompiledModel {
  const rules = model.adapter as unknown as ModelRules
  const properties = model.input.schema?.['properties']
  return {
    rules,
    operations: rules.operations.map((operation) => compileOperation(operation, model)),
    assets: rules.assets.map(readJsonPath),
    classify: compileOutcomes([...(rules.outcomes ?? []), ...provider.outcomes]),
    usage: rules.usage === undefined ? null : readJsonPath(rules.usage),
    cost:
      rules.cost === undefined
        ? null
        : {
            path: readJsonPath(rules.cost.path),
            kept: rules.cost.kept ?? null,
            microsPerUnit: rules.cost.micros_per_unit,
          },
    knownFields: properties === undefined || properties === null ? null : new Set(Object.keys(properties)),
  }
}

function compileOperation(rules: OperationRules, { input }: Model): CompiledOperation {
  const modelName = input.modelField === null ? {} : { [input.modelField]: '{model}' }
  const { path, headers, body, refuse } = rules
  const texts = JSON.stringify([path, headers, body, refuse, modelName, toReference(rules)])
  return {
    rules,
    fits: compileConditions(rules.when),
    hasTemplates: namesIn(texts).length > 0,
    path: compileTemplate(rules.path, encodeForPath),
    headers: Object.entries(rules.headers ?? {}).map(([name, text]) => [name, compileTemplate(text)]),
    body: compileBody({ ...rules.body, inject: { ...modelName, ...toReference(rules), ...rules.body?.inject } }),
    media: (rules.media ?? []).map((media) => [media, readJsonPath(media.path)]),
    refuse: (rules.refuse ?? []).map((refuse) => ({
      ...refuse,
      where: readJsonPath(refuse.path),
      prefix: compileTemplate(refuse.starts_with),
    })),
    task: rules.task === undefined ? null : compileTask(rules.task),
  }
}

/** The reference by which a task can be found again is sent with its submit. */
function toReference({ task }: OperationRules): Record<string, string> {
  return task?.find === undefined ? {} : { [task.find.field]: '{submit_key}' }
}

function compileTask(rules: TaskRules): CompiledTask {
  const { result } = rules
  return {
    rules,
    id: readJsonPath(rules.id),
    keep: toPaths(rules.keep),
    poll: compileFetch(rules.poll),
    states: rules.state.map((path) => (path === '@http_status' ? 'http_status' : readJsonPath(path))),
    meanings: new Map(
      TASK_STATES.flatMap((state) => (rules[state] ?? []).map((word) => [toWord(word), state] as const)),
    ),
    result:
      result === undefined
        ? null
        : { ...compileFetch(result), take: toPaths(result.take), mergeAs: result.merge_as ?? null },
    cancel: rules.cancel === undefined ? null : compileFetch(rules.cancel),
    find: rules.find === undefined ? null : compileFetch(rules.find),
  }
}

function toPaths(names: Readonly<Record<string, string>> = {}): (readonly [string, JsonPath])[] {
  return Object.entries(names).map(([name, path]) => [name, readJsonPath(path)])
}

function compileFetch({ method = 'GET', url, path, body, as_list: isList = false }: FetchRule): CompiledFetch {
  const write = body === undefined ? null : compileJsonTemplate(body)
  return {
    method,
    urlFrom: url ?? null,
    path: path === undefined ? null : compileTemplate(path, encodeForPath),
    body: write !== null && isList ? (values) => [write(values)] : write,
  }
}

/** How states are compared: providers differ in case and blanks, some even between their own answers. */
export function toWord(state: unknown): string {
  return String(state).trim().toLowerCase()
}

interface BodyInput {
  readonly body: Buffer
  readonly input: Readonly<Record<string, unknown>>
  readonly values: TemplateValues
  /** The fields that the schema knows; null: no schema. */
  readonly knownFields: ReadonlySet<string> | null
}

interface BodyWriter {
  /** A field that a lenient provider takes for one that the rules set or remove; undefined: there is none. */
  findLookalike(input: BodyInput['input']): { readonly field: string; readonly meant: string } | undefined
  toBytes(from: BodyInput): Buffer
  /** For forms: the fields after the rules. */
  toFields(from: BodyInput): JsonObject
}

const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
// The last of the four characters that JSON calls white space; the others come before it.
const SPACE = 0x20

/**
 * The caller's input as the provider gets it. An input that no rule changes is sent byte for byte; fields that are only added are
 * put before and behind the caller's bytes. Otherwise the document is parsed and written again, with every digit kept.
 */
export function compileBody(rules: BodyRules = {}): BodyWriter {
  const forced = rules.force ?? {}
  const force = compileFields(forced, { isForced: true })
  const inject = compileFields(rules.inject, { isForced: false }).filter(({ name }) => !(name in forced))
  const removed = [
    ...(rules.drop ?? []),
    ...Object.keys(rules.rename ?? {}),
    ...(rules.strip ?? []).map(({ field }) => field),
  ]
  const ruled = [...force, ...inject].map(({ path }) => path).concat(removed.map((field) => [field]))
  const names = compileNames(ruled)

  function findLookalike(input: BodyInput['input']) {
    const [found] = findLookalikes(names, input as JsonRecord)
    return found && { field: found.at.join('.'), meant: found.meant }
  }

  const isUntouched = ({ input, knownFields }: BodyInput) =>
    removed.every((field) => !(field in input)) &&
    (!rules.drop_unknown || knownFields === null || Object.keys(input).every((field) => knownFields.has(field)))

  function toFields({ body, values, knownFields }: BodyInput): JsonObject {
    const fields = parseLosslessJson(body.toString('utf8'))
    if (!isJsonObject(fields)) throw new Error('a model is only ever given an object')
    dropFields(fields, rules, knownFields)
    for (const { path, write } of inject) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: true })
    for (const { path, write } of force) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: false })
    return fields
  }

  function toBytes(from: BodyInput): Buffer {
    if (isUntouched(from)) {
      const added = new Set<string>()
      const after = toMissing(force, from, added)
      const before = after === null ? null : toMissing(inject, from, added)
      if (after === '' && before === '') return from.body
      if (after !== null && before !== null) return spliceFields(from.body, before, after)
    }
    return Buffer.from(stringifyLosslessJson(toFields(from)))
  }

  return { findLookalike, toBytes, toFields }
}

interface FieldWriter {
  readonly name: string
  readonly path: readonly string[]
  readonly isForced: boolean
  readonly write: (values: TemplateValues) => unknown
  /** Whether an input has it already, so that nothing is added. */
  readonly isIn: (from: BodyInput) => boolean
  /** As a member of an object, in JSON. */
  readonly toMember: (values: TemplateValues) => string
}

function compileFields(
  fields: Readonly<Record<string, unknown>> = {},
  { isForced }: { readonly isForced: boolean },
): FieldWriter[] {
  return Object.entries(fields).map(([name, value]) => {
    const write = compileJsonTemplate(value)
    const path = name.split('.')
    const [first] = path
    const toMember = (written: unknown) =>
      path.reduceRight((json, step) => `{${JSON.stringify(step)}:${json}}`, JSON.stringify(written)).slice(1, -1)
    // Written once where nothing of a call stands in it.
    const constant = namesIn(JSON.stringify(value)).length === 0 ? toMember(value) : null
    return {
      ...{ name, path, isForced, write },
      isIn: isForced
        ? ({ input, values }) => first in input && input[first] === write(values)
        : ({ input }) => path.length === 1 && !isMissing(input[first]),
      toMember: (values) => constant ?? toMember(write(values)),
    }
  })
}

/** The members that an input lacks, as JSON; null: one of them cannot simply be added. `added`: those that are already. */
function toMissing(fields: readonly FieldWriter[], from: BodyInput, added: Set<string>): string | null {
  let text = ''
  for (const { path, isForced, isIn, toMember } of fields) {
    if (isIn(from)) continue
    const [first] = path
    if ((path.length > 1 && !isForced) || first in from.input || added.has(first)) return null
    added.add(first)
    text += text === '' ? toMember(from.values) : `,${toMember(from.values)}`
  }
  return text
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null
}

function dropFields(fields: JsonObject, rules: BodyRules, knownFields: ReadonlySet<string> | null): void {
  for (const { field, unless } of rules.strip ?? []) if (isMissing(fields[unless])) delete fields[field]
  for (const field of rules.drop ?? []) delete fields[field]
  if (rules.drop_unknown && knownFields !== null) {
    for (const field of Object.keys(fields)) if (!knownFields.has(field)) delete fields[field]
  }
  for (const [from, to] of Object.entries(rules.rename ?? {})) {
    if (!Object.hasOwn(fields, from)) continue
    fields[to] = fields[from]
    delete fields[from]
  }
}

function setAt(
  fields: JsonObject,
  path: readonly string[],
  value: JsonValue,
  { onlyIfMissing }: { readonly onlyIfMissing: boolean },
): void {
  let holder = fields
  for (const name of path.slice(0, -1)) {
    const next = holder[name]
    if (isJsonObject(next)) holder = next
    else if (isMissing(next)) {
      const made: JsonObject = {}
      holder[name] = made
      holder = made
    } else return
  }
  const last = path[path.length - 1]
  if (!onlyIfMissing || isMissing(holder[last])) holder[last] = value
}

/** `{…}` becomes `{"model":"x",…,"stream":false}`: the caller's bytes stay as they are. */
function spliceFields(body: Buffer, before: string, after: string): Buffer {
  const start = body.indexOf(OPEN_BRACE) + 1
  const end = body.lastIndexOf(CLOSE_BRACE)
  let first = start
  while (body[first] <= SPACE) first++
  const isEmpty = first === end
  const head = before === '' || (isEmpty && after === '') ? before : `${before},`
  const tail = after === '' || isEmpty ? after : `,${after}`
  const headBytes = Buffer.byteLength(head)
  const tailBytes = Buffer.byteLength(tail)
  const spliced = Buffer.allocUnsafe(body.length + headBytes + tailBytes)
  body.copy(spliced, 0, 0, start)
  spliced.write(head, start)
  body.copy(spliced, start + headBytes, start, end)
  spliced.write(tail, end + headBytes)
  body.copy(spliced, end + headBytes + tailBytes, end)
  return spliced
}
