/** The shape of the rules as JSON Schema, against which `models lint` and every reload check the files. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { closestWord } from '../../../../../lib/text/closest-word.ts'
import { findOtherDefaults, type Model, writeJsonPath } from '../../../../domain/models/catalog/model.ts'
import { compileModel } from './compile-model.ts'
import { MEANINGS, type ModelRules, namesIn, OCCASIONS, type OperationRules, type ProviderRules } from './rule-types.ts'

const TEXT = { type: 'string', minLength: 1, maxLength: 2000 }
const TEXTS = { type: 'array', items: TEXT, maxItems: 64 }
const TEXT_MAP = { type: 'object', additionalProperties: { type: 'string', maxLength: 2000 }, maxProperties: 64 }
const FREE_MAP = { type: 'object', maxProperties: 64 }
const COUNT = { type: 'integer', minimum: 1 }
const ADDRESS = '^https?://'

function closed(properties: Record<string, unknown>, required: readonly string[] = []) {
  return { type: 'object', additionalProperties: false, properties, required }
}

const OUTCOMES = {
  type: 'array',
  maxItems: 100,
  items: closed(
    {
      on: { type: 'array', items: { enum: OCCASIONS }, minItems: 1 },
      status: { type: 'array', items: { type: 'integer', minimum: 200, maximum: 599 }, minItems: 1 },
      // Empty: the whole document, for providers that refuse in plain text.
      path: { type: 'string', maxLength: 2000 },
      header: TEXT,
      match: TEXT,
      despite_output: { type: 'boolean' },
      source: { ...TEXT, pattern: ADDRESS },
      is: { enum: MEANINGS },
    },
    ['is'],
  ),
}

const FETCH = {
  path: TEXT,
  url: TEXT,
  method: { enum: ['GET', 'POST', 'PUT', 'DELETE'] },
  body: FREE_MAP,
  as_list: { type: 'boolean' },
}

const TASK = closed(
  {
    id: TEXT,
    keep: TEXT_MAP,
    poll: closed(FETCH),
    interval_ms: { type: 'integer', minimum: 100, maximum: 60_000 },
    state: TEXTS,
    success: TEXTS,
    failed: TEXTS,
    policy: TEXTS,
    timeout: TEXTS,
    done_by_output: { type: 'boolean' },
    result: closed({ ...FETCH, take: TEXT_MAP, merge_as: TEXT }),
    cancel: closed(FETCH),
    find: closed({ ...FETCH, field: TEXT }, ['field', 'path']),
  },
  ['id', 'poll', 'interval_ms', 'state'],
)

const CONDITION = closed({
  present: TEXT,
  absent: TEXT,
  setting: TEXT,
  path: TEXT,
  is: { type: 'array', items: { type: 'string', maxLength: 2000 }, minItems: 1 },
})

const BODY = closed({
  inject: FREE_MAP,
  force: FREE_MAP,
  rename: TEXT_MAP,
  drop: TEXTS,
  strip: { type: 'array', items: closed({ field: TEXT, unless: TEXT }, ['field', 'unless']) },
  drop_unknown: { type: 'boolean' },
})

const MEDIA = closed({ path: TEXT, as: TEXT, max_items: COUNT, types: TEXTS, max_bytes: COUNT }, ['path', 'as'])

const OPERATION = closed(
  {
    name: TEXT,
    when: { type: 'array', items: CONDITION, maxItems: 16 },
    path: TEXT,
    headers: TEXT_MAP,
    encoding: { enum: ['json', 'json_list', 'multipart', 'as_sent'] },
    body: BODY,
    media: { type: 'array', items: MEDIA, maxItems: 16 },
    refuse: {
      type: 'array',
      items: closed({ path: TEXT, starts_with: TEXT, message: TEXT }, ['path', 'starts_with', 'message']),
    },
    returns: { enum: ['bytes', 'json', 'task', 'events'] },
    task: TASK,
    told: TEXT_MAP,
  },
  ['name', 'path', 'returns'],
)

const MODEL_RULES = closed(
  {
    operations: { type: 'array', items: OPERATION, minItems: 1, maxItems: 16 },
    assets: TEXTS,
    outcomes: OUTCOMES,
    usage: TEXT,
    usage_headers: TEXT_MAP,
    cost: closed({ path: TEXT, kept: TEXT, micros_per_unit: { type: 'number', exclusiveMinimum: 0 } }, [
      'path',
      'micros_per_unit',
    ]),
    host_inline: closed({ when: TEXT, parts: TEXT }, ['when', 'parts']),
    download_with_key: { type: 'boolean' },
    max_answer_bytes: COUNT,
    deduplicates: { type: 'boolean' },
  },
  ['operations', 'assets'],
)

const PROVIDER_RULES = closed(
  {
    provider: { type: 'string', pattern: '^[a-z0-9]+([._-][a-z0-9]+)*$', maxLength: 64 },
    title: TEXT,
    base_url: { type: 'string', pattern: ADDRESS },
    api_hosts: TEXTS,
    auth: {
      type: 'array',
      minItems: 1,
      items: closed(
        {
          key_matches: TEXT,
          headers: TEXT_MAP,
          jwt: closed({ lifetime_seconds: COUNT, early_seconds: COUNT }, ['lifetime_seconds', 'early_seconds']),
        },
        ['headers'],
      ),
    },
    key_check: closed({ path: TEXT }, ['path']),
    headers: TEXT_MAP,
    concurrency: { type: 'integer', minimum: 1, maximum: 100_000 },
    settings: TEXT_MAP,
    outcomes: OUTCOMES,
    messages: TEXTS,
    validation_list: TEXT,
  },
  ['provider', 'title', 'base_url', 'api_hosts', 'auth', 'concurrency', 'outcomes', 'messages'],
)

/** Compiled with the first file that needs it: files of this release are known to fit, so most starts need neither. */
function compileOnce(schema: object): () => ValidateFunction {
  let validate: ValidateFunction | null = null
  return () => {
    validate ??= new Ajv({ allErrors: true, strict: true, allowUnionTypes: true, verbose: true }).compile(schema)
    return validate
  }
}

const modelRules = compileOnce(MODEL_RULES)
const providerRules = compileOnce(PROVIDER_RULES)

interface RuleProblem {
  /** Where in the file: `operations[0].task`; empty for the whole. */
  readonly path: string
  readonly problem: string
}

const checkModelShape = (value: unknown): RuleProblem[] => check(modelRules(), value)
export const checkProviderShape = (value: unknown): RuleProblem[] => check(providerRules(), value)

function check(validate: ValidateFunction, value: unknown): RuleProblem[] {
  return validate(value) ? [] : (validate.errors ?? []).map(toProblem)
}

function toProblem(error: ErrorObject): RuleProblem {
  return { path: toFieldPath(error.instancePath), problem: toWords(error) }
}

/** `/operations/0/task` as people write it. */
function toFieldPath(pointer: string): string {
  return pointer
    .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.')
    .replace(/^\./, '')
}

function toWords({ keyword, message, params, parentSchema }: ErrorObject): string {
  switch (keyword) {
    case 'additionalProperties': {
      const meant = closestWord(params['additionalProperty'], Object.keys(parentSchema?.['properties'] ?? {}))
      return `has no field ${params['additionalProperty']}${meant === null ? '' : `; did you mean ${meant}?`}`
    }
    case 'required':
      return `lacks the field ${params['missingProperty']}`
    case 'enum':
      return `must be one of ${params['allowedValues'].join(', ')}`
    case 'pattern':
      return params['pattern'] === ADDRESS ? 'must begin with https:// or http://' : `must match ${params['pattern']}`
    default:
      return message ?? 'is wrong'
  }
}

/** Problems in a model's rules: their shape, paths and patterns that cannot be parsed, and names that have no value. */
export function checkModelRules(model: Model, provider: ProviderRules): string[] {
  const shape = checkAdapterShape(model.adapter)
  if (shape.length > 0) return shape
  const rules = model.adapter as unknown as ModelRules
  try {
    compileModel(model, provider)
  } catch (error) {
    return [`adapter ${error instanceof Error ? error.message : 'cannot be read'}`]
  }
  return [
    ...rules.operations.flatMap((operation, index) =>
      checkOperation(operation, `adapter.operations[${index}]`, { model, provider }),
    ),
    ...checkReturns(model, rules),
    ...checkCost(rules),
  ]
}

/** The problems that show without the rest of the model. */
export function checkAdapterShape(adapter: unknown): string[] {
  return checkModelShape(adapter).map(({ path, problem }) => `${joinPath('adapter', path)} ${problem}`)
}

function joinPath(parent: string, path: string): string {
  return path === '' || path.startsWith('[') ? `${parent}${path}` : `${parent}.${path}`
}

function checkReturns(model: Model, { operations, assets }: ModelRules): string[] {
  const problems: string[] = []
  const isPolled = operations.some(({ returns }) => returns === 'task')
  if (isPolled !== (model.returns === 'poll')) {
    problems.push(`returns must be ${isPolled ? 'poll' : 'direct'}, as the operations say`)
  }
  if (assets.length === 0 && operations.some(({ returns }) => returns === 'json' || returns === 'task')) {
    problems.push('adapter.assets must name where the output is: nothing else proves that a call succeeded')
  }
  for (const leaf of model.hosting?.leaves ?? []) {
    if (!assets.includes(leaf)) problems.push(`hosting.leaves names ${leaf}, which is none of adapter.assets`)
  }
  if (operations.at(-1)?.when !== undefined && operations.every(({ when }) => when !== undefined)) {
    problems.push('adapter.operations: the last one should fit every input that the others leave')
  }
  return problems
}

function checkCost({ cost, operations }: ModelRules): string[] {
  const kept = cost?.kept
  if (kept === undefined || operations.some(({ task }) => Object.hasOwn(task?.keep ?? {}, kept))) return []
  return [`adapter.cost.kept names ${kept}, which no task keeps`]
}

interface OperationContext {
  readonly model: Model
  readonly provider: ProviderRules
}

function checkOperation(operation: OperationRules, where: string, { model, provider }: OperationContext): string[] {
  const { task, returns } = operation
  const problems: string[] = []
  if ((returns === 'task') !== (task !== undefined))
    problems.push(`${where}.task is for operations that return a task, and only for them`)
  if (operation.media !== undefined && operation.encoding !== 'multipart')
    problems.push(`${where}.media needs encoding multipart`)
  const { inject = {} } = operation.body ?? {}
  for (const other of findOtherDefaults(model.price, (path) => inject[writeJsonPath(path)]))
    problems.push(`${where}.body.inject says that ${other}`)
  const fields = model.input.schema?.['properties'] ?? {}
  const known = [
    'model',
    'submit_key',
    'submit_uuid',
    ...Object.keys(provider.settings ?? {}).map((name) => `setting.${name}`),
  ]
  const inputs = Object.keys(fields ?? {}).map((field) => `input.${field}`)
  problems.push(...checkNames(operation.path, `${where}.path`, [...known, ...inputs]))
  if (task === undefined) return problems
  const kept = Object.keys(task.keep ?? {})
  const taken = Object.keys(task.result?.take ?? {})
  for (const [name, fetch, more] of [
    ['poll', task.poll, []],
    ['result', task.result, taken],
    ['cancel', task.cancel, []],
  ] as const) {
    if (fetch === undefined) continue
    if (fetch.path === undefined && fetch.url === undefined)
      problems.push(`${where}.task.${name} has neither path nor url`)
    if (fetch.path !== undefined)
      problems.push(...checkNames(fetch.path, `${where}.task.${name}.path`, [...known, 'id', ...kept, ...more]))
    if (fetch.url !== undefined && ![...kept, ...more].includes(fetch.url)) {
      problems.push(`${where}.task.${name}.url names ${fetch.url}, which is not kept`)
    }
  }
  if (task.find !== undefined) problems.push(...checkNames(task.find.path, `${where}.task.find.path`, known))
  return problems
}

function checkNames(text: string, where: string, known: readonly string[]): string[] {
  return namesIn(text)
    .filter((name) => !known.includes(name))
    .map(
      (name) =>
        `${where} names {${name}}, which has no value there; there are ${known.map((one) => `{${one}}`).join(', ')}`,
    )
}
