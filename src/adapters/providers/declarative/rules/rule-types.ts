import type { IncomingHttpHeaders } from 'node:http'
import { readJsonPath, someValue } from '../../../../domain/models/catalog/model.ts'

/**
 * How a provider is called, as data. A provider's file says where its API is, how we authenticate and how it words its refusals;
 * a model's file says which requests its inputs become and where the answers hold what. Names in snake_case are those of the
 * files. docs/adapters.md explains all of them with examples.
 */
export interface AuthRule {
  /** For keys that fit this pattern; absent: for every key. */
  readonly key_matches?: string
  /** `{key}` stands for the key, `{jwt}` for a token signed with it. */
  readonly headers: Readonly<Record<string, string>>
  /** HS256 with claims iss, exp and nbf, from a key written `issuer:secret`. */
  readonly jwt?: { readonly lifetime_seconds: number; readonly early_seconds: number }
}

/**
 * What an answer means to us. `wait` is a rate limit, `account` a problem of our account with the provider, `not_accepted` a failure
 * of which a document of the provider says that nothing was accepted.
 */
export const MEANINGS = [
  ...(['policy', 'invalid', 'wait', 'account', 'not_accepted', 'transient', 'timeout', 'failed'] as const),
] as const
export type Meaning = (typeof MEANINGS)[number]

/** `error`: answers with an HTTP error. `ok`: documents that came with success. `failed`: documents of a task that failed. */
export const OCCASIONS = ['error', 'ok', 'failed'] as const
type Occasion = (typeof OCCASIONS)[number]

/** The first rule that fits decides. Everything that a rule names must hold. */
interface OutcomeRule {
  /** Absent: `error` and `failed`. */
  readonly on?: readonly Occasion[]
  readonly status?: readonly number[]
  /** A value in the document; with `match`, one that the pattern fits (case does not count), else any but null and ''. */
  readonly path?: string
  readonly header?: string
  readonly match?: string
  /** On `ok`: also when there is output. A blurred picture beside a refusal is no result. */
  readonly despite_output?: boolean
  /** The document that says so, of what is `not_accepted`. */
  readonly source?: string
  readonly is: Meaning
}

export interface ProviderRules {
  readonly provider: string
  readonly title: string
  readonly base_url: string
  /** Further hosts of its API: they may be polled and may see the key. A leading dot admits everything below. */
  readonly api_hosts: readonly string[]
  readonly auth: readonly AuthRule[]
  /** A GET that costs nothing and that the provider answers with 401 or 403 to a key it refuses; left out: it has none. */
  readonly key_check?: { readonly path: string }
  readonly headers?: Readonly<Record<string, string>>
  /** Generations at a time. */
  readonly concurrency: number
  /** What an operator may set, with its default; used as `{setting.name}`. */
  readonly settings?: Readonly<Record<string, string>>
  readonly outcomes: readonly OutcomeRule[]
  /** Where its documents keep words about a failure. */
  readonly messages: readonly string[]
  /** Where its answers to a bad input keep a list of `{loc, msg, type}`. */
  readonly validation_list?: string
}

/** Everything that a condition names must hold. */
interface Condition {
  readonly present?: string
  readonly absent?: string
  readonly setting?: string
  readonly path?: string
  /** For `setting` and `path`. */
  readonly is?: readonly string[]
}

export interface BodyRules {
  /** Set where the caller left it out or wrote null. */
  readonly inject?: Readonly<Record<string, unknown>>
  /** Set whatever the caller wrote. */
  readonly force?: Readonly<Record<string, unknown>>
  readonly rename?: Readonly<Record<string, string>>
  readonly drop?: readonly string[]
  /** Left out unless another field is there. */
  readonly strip?: readonly { readonly field: string; readonly unless: string }[]
  /** Fields that the schema does not know are left out. */
  readonly drop_unknown?: boolean
}

export interface MediaRule {
  /** The field of the input: one URL or data URI, or a list of them. */
  readonly path: string
  /** The part's name in the form. */
  readonly as: string
  readonly max_items?: number
  readonly types?: readonly string[]
  readonly max_bytes?: number
}

export interface RefuseRule {
  readonly path: string
  readonly starts_with: string
  readonly message: string
}

export interface FetchRule {
  readonly path?: string
  /** The name of a kept value that is a URL. */
  readonly url?: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly body?: Readonly<Record<string, unknown>>
  /** The body is the only element of a list. */
  readonly as_list?: boolean
}

export interface TaskRules {
  readonly id: string
  /** Further values of the submit's answer that polling needs, by name. */
  readonly keep?: Readonly<Record<string, string>>
  readonly poll: FetchRule
  readonly interval_ms: number
  /** Where the state is; the first that is there counts. */
  readonly state: readonly string[]
  /** Compared without case and surrounding blanks. A state that stands nowhere is pending. */
  readonly success?: readonly string[]
  readonly failed?: readonly string[]
  readonly policy?: readonly string[]
  readonly timeout?: readonly string[]
  /** Output counts as success whatever the state says. */
  readonly done_by_output?: boolean
  /** Where the finished document is, when the poll's is not it. `take` are values of the poll's document. */
  readonly result?: FetchRule & { readonly take?: Readonly<Record<string, string>>; readonly merge_as?: string }
  readonly cancel?: FetchRule
  /** How a task is found whose submit was never answered: `field` of the input takes `{submit_key}`, `path` asks for it. */
  readonly find?: FetchRule & { readonly field: string; readonly path: string }
}

export interface OperationRules {
  readonly name: string
  readonly when?: readonly Condition[]
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** `as_sent`: the caller's own bytes under its own content type, which may be a form. `json_list`: as the only element of a list. */
  readonly encoding?: 'json' | 'json_list' | 'multipart' | 'as_sent'
  readonly body?: BodyRules
  readonly media?: readonly MediaRule[]
  readonly refuse?: readonly RefuseRule[]
  /** `events`: those of a conversation in OpenAI's form, passed on as they come. */
  readonly returns: 'bytes' | 'json' | 'task' | 'events'
  readonly task?: TaskRules
  /** The caller follows the task itself: it gets the answer to the submit, with other values at these paths. */
  readonly told?: Readonly<Record<string, string>>
}

/** The `adapter` part of a model's file. */
export interface ModelRules {
  readonly operations: readonly OperationRules[]
  /** Leaves that make a result: at least one must be there and not empty. `bytes` needs none. */
  readonly assets: readonly string[]
  /** Before those of the provider. */
  readonly outcomes?: readonly OutcomeRule[]
  /** Where a result says what was used. */
  readonly usage?: string
  /** The same in headers: `{character_cost: "character-cost"}`. */
  readonly usage_headers?: Readonly<Record<string, string>>
  /** Where it says what it cost; `kept`: the name of a kept value that says so where the finished document does not. */
  readonly cost?: { readonly path: string; readonly kept?: string; readonly micros_per_unit: number }
  /** Inline media at `parts` are hosted when the input's field `when` is true. */
  readonly host_inline?: { readonly when: string; readonly parts: string }
  /** Results lie behind the API itself: copies are fetched with the key, from its hosts only. */
  readonly download_with_key?: boolean
  readonly max_answer_bytes?: number
  /** The provider itself makes one generation of several submits with the same key. */
  readonly deduplicates?: boolean
}

/**
 * Texts with names in braces, `/models/{model}:predict`. Parsed once when the rules are read; a name that has no value is a
 * defect of the rules, found by the linter. Values in a path are percent-encoded, so that none can change the path's shape.
 */
export type Template = (values: TemplateValues) => string

export type TemplateValues = Readonly<Record<string, string | undefined>>

const NAME = /\{([a-z_][a-z0-9_.]*)\}/g

/** The names that stand in braces. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(NAME)].map(([, name]) => name)
}

export function compileTemplate(text: string, encode: (value: string) => string = (value) => value): Template {
  const names = namesIn(text)
  if (names.length === 0) return () => text
  const literals = text.split(NAME).filter((_piece, index) => index % 2 === 0)
  return (values) =>
    literals.reduce((made, literal, index) => `${made}${encode(lookUp(names[index - 1], values))}${literal}`)
}

function lookUp(name: string, values: TemplateValues): string {
  const value = values[name]
  if (value === undefined) throw new Error(`the rules name {${name}}, which has no value here`)
  return value
}

/** For paths: `projects/a` stays two segments; characters that could end or leave the path are encoded. */
export function encodeForPath(value: string): string {
  return value.split('/').map(encodeSegment).join('/')
}

function encodeSegment(segment: string): string {
  return segment === '.' || segment === '..' ? segment.replaceAll('.', '%2E') : encodeURIComponent(segment)
}

/** A JSON value whose texts are templates. */
export function compileJsonTemplate(value: unknown): (values: TemplateValues) => unknown {
  if (typeof value === 'string') return compileTemplate(value)
  if (Array.isArray(value)) {
    const items = value.map(compileJsonTemplate)
    return (values) => items.map((item) => item(values))
  }
  if (typeof value !== 'object' || value === null) return () => value
  const entries = Object.entries(value).map(([name, item]) => [name, compileJsonTemplate(item)] as const)
  return (values) => Object.fromEntries(entries.map(([name, item]) => [name, item(values)]))
}

/**
 * Which rule fits: the conditions of an operation for an input, and the outcome rules for an answer. Fields that are null count
 * as left out.
 */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The parsed body; a text when it is no JSON. */
  readonly document: unknown
}

/** null: no rule speaks. */
export type Classify = (answer: Answer, occasion: Occasion, hasOutput?: boolean) => Meaning | null

/** What an answer means, by the provider's rules; where none speaks, its HTTP status does (`meaningOfStatus`). */
export function compileOutcomes(rules: readonly OutcomeRule[]): Classify {
  const tests = rules.map((rule) => ({ ...rule, fits: compileRule(rule), on: rule.on ?? ['error', 'failed'] }))
  return (answer, occasion, hasOutput = false) => {
    const found = tests.find(
      ({ on, despite_output, fits }) =>
        on.includes(occasion) && (!hasOutput || despite_output === true) && fits(answer),
    )
    return found?.is ?? null
  }
}

function compileRule({ status, path, header, match }: OutcomeRule): (answer: Answer) => boolean {
  const where = path === undefined ? null : readJsonPath(path)
  const pattern = match === undefined ? null : new RegExp(match, 'iu')
  const holds = (value: unknown) => (pattern === null ? !isEmpty(value) : pattern.test(toText(value)))
  const holdsThere = (value: unknown) => !isEmpty(value) && holds(value)
  return (answer) =>
    (status === undefined || status.includes(answer.status)) &&
    (header === undefined || holds(answer.headers[header])) &&
    (where === null || someValue(answer.document, where, holdsThere))
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const BY_STATUS: Readonly<Record<number, Meaning>> = {
  400: 'invalid',
  401: 'account',
  402: 'account',
  403: 'account',
  404: 'failed',
  405: 'failed',
  408: 'transient',
  413: 'invalid',
  415: 'invalid',
  422: 'invalid',
  429: 'wait',
  504: 'timeout',
}

/** What an answer means, and whether a rule says so; else its status alone does, or that nobody understands it. */
export interface Judgement {
  readonly meaning: Meaning
  readonly isStated: boolean
}

/** Where no rule speaks. */
export function meaningOfStatus(status: number): Meaning {
  return BY_STATUS[status] ?? (status >= 500 ? 'transient' : 'failed')
}

export type InputTest = (input: unknown, settings: Readonly<Record<string, string>>) => boolean

/** Whether an operation is the one that an input asks for. */
export function compileConditions(conditions: readonly Condition[] = []): InputTest {
  const tests = conditions.flatMap(compileCondition)
  return (input, settings) => tests.every((test) => test(input, settings))
}

function compileCondition({ present, absent, setting, path, is }: Condition): InputTest[] {
  const tests: InputTest[] = []
  if (present !== undefined) tests.push(hasValue(present))
  if (absent !== undefined) {
    const isThere = hasValue(absent)
    tests.push((input, settings) => !isThere(input, settings))
  }
  if (setting !== undefined) tests.push((_input, settings) => is?.includes(settings[setting] ?? '') ?? false)
  if (path !== undefined) {
    const where = readJsonPath(path)
    tests.push((input) => someValue(input, where, (value) => is?.includes(String(value)) ?? false))
  }
  return tests
}

function hasValue(path: string): InputTest {
  const where = readJsonPath(path)
  return (input) => someValue(input, where, (value) => !isEmpty(value))
}

/** null, '' and an empty list say that there is nothing. */
export function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}
