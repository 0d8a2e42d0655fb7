/** The shape of the rules as JSON Schema, against which `models lint` and every reload check the files. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { closestWord } from '../../../../../lib/text/closest-word.ts'
import { MEANINGS, OCCASIONS } from './rule-types.ts'

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
    find: closed({ field: TEXT, path: TEXT }, ['field', 'path']),
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
    encoding: { enum: ['json', 'multipart', 'as_sent'] },
    body: BODY,
    media: { type: 'array', items: MEDIA, maxItems: 16 },
    refuse: {
      type: 'array',
      items: closed({ path: TEXT, starts_with: TEXT, message: TEXT }, ['path', 'starts_with', 'message']),
    },
    returns: { enum: ['bytes', 'json', 'task'] },
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

export const checkModelShape = (value: unknown): RuleProblem[] => check(modelRules(), value)
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
