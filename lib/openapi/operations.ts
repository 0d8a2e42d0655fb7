/** The operations of an OpenAPI document, in the words that a client in any language needs. */

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly contentMediaType?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

interface Content {
  readonly schema?: Schema
  readonly example?: unknown
  readonly 'x-events'?: Readonly<Record<string, Schema>>
}

interface Answer {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, Content>>
  readonly headers?: Readonly<Record<string, unknown>>
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly example?: unknown
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
}

interface Described {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[]
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, Answer>>
}

export interface Document {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>> & {
    readonly schemas: Readonly<Record<string, Schema>>
  }
}

/** What a caller gives an operation beside its body. */
export interface Argument {
  /** Of the parameter; headers are written as one word: `idempotencyKey`. */
  readonly name: string
  /** As it is sent. */
  readonly wire: string
  readonly in: 'path' | 'query' | 'header'
  readonly isRequired: boolean
  readonly schema: Schema
  readonly description: string
  /** Left out: the sample does without it. */
  readonly example?: unknown
}

interface Body {
  readonly isRequired: boolean
  /** JSON, where the operation takes it, comes first. */
  readonly types: readonly string[]
  readonly schema: Schema
  /** Members of a form that are files. */
  readonly files: readonly string[]
  /** Of bytes, and of files in a form, the text that they are. */
  readonly example?: unknown
}

/**
 * What comes back: JSON (null where an answer may have no body), events by their names, nothing, or the answer itself, for files and
 * for what is told by status and headers.
 */
export type Result =
  | { readonly kind: 'json'; readonly schema: Schema; readonly orNull: boolean }
  | { readonly kind: 'events'; readonly events: Readonly<Record<string, Schema>> }
  | { readonly kind: 'response' }
  | { readonly kind: 'nothing' }

export interface Operation {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly arguments: readonly Argument[]
  readonly body: Body | null
  readonly result: Result
  /** What it answers to its examples; null: the document has none. */
  readonly answer: { readonly status: string; readonly example: unknown } | null
}

export const JSON_TYPE = 'application/json'
const EVENTS_TYPE = 'text/event-stream'
const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options']
// Answers to it have no body at all, and every caller would have to expect that.
const NOT_TAKEN = ['If-None-Match']
const REQUEST_ID = /-Request-Id$/

export function readOperations(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const described = item[method]
      return described === undefined ? [] : [toOperation(document, method, path, described)]
    }),
  )
}

function toOperation(document: Document, method: string, path: string, described: Described): Operation {
  const { operationId, summary = '', description = '', parameters = [], requestBody, responses } = described
  return {
    ...{ name: operationId, method: method.toUpperCase(), path, summary, description },
    arguments: parameters.map((each) => resolve(document, each)).flatMap(toArgument),
    body: requestBody === undefined ? null : toBody(document, requestBody),
    result: toResult(method, successes(document, responses)),
    answer: toAnswer(document, responses),
  }
}

function toArgument(parameter: Parameter): Argument[] {
  const { name, in: place, required = false, schema = {}, description = '', example } = parameter
  if (NOT_TAKEN.includes(name)) return []
  const words = name.split('-')
  const argument = words.map((word, index) => (index === 0 ? word.toLowerCase() : word)).join('')
  const called = place === 'header' ? argument : name
  return [{ name: called, wire: name, in: place, isRequired: required, schema, description, example }]
}

function toBody(document: Document, { required = false, content }: NonNullable<Described['requestBody']>): Body {
  const types = Object.keys(content).sort((one, other) => Number(other === JSON_TYPE) - Number(one === JSON_TYPE))
  const { schema = {}, example } = content[types[0]]
  const members = Object.entries(resolve(document, schema as Schema | { readonly $ref: string }).properties ?? {})
  const files = members.filter(([, each]) => isBytes(each)).map(([name]) => name)
  return { isRequired: required, types, schema, files, example }
}

function successes(document: Document, responses: Described['responses']): Answer[] {
  return Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, answer]) => resolve(document, answer))
}

function toAnswer(document: Document, responses: Described['responses']): Operation['answer'] {
  for (const [status, response] of Object.entries(responses)) {
    if (!status.startsWith('2')) continue
    const content = Object.values(resolve(document, response).content ?? {}).find(
      ({ example }) => example !== undefined,
    )
    if (content !== undefined) return { status, example: content.example }
  }
  return null
}

function toResult(method: string, answers: readonly Answer[]): Result {
  const contents = answers.flatMap(({ content = {} }) => Object.entries(content))
  const events = contents.find(([type]) => type === EVENTS_TYPE)
  if (events !== undefined) return { kind: 'events', events: events[1]['x-events'] ?? {} }
  const json = contents.find(([type]) => type === JSON_TYPE)
  if (json !== undefined && contents.every(([type]) => type !== '*/*')) {
    // The same operation may answer a list of columns, too, to whoever asks for that.
    return { kind: 'json', schema: json[1].schema ?? {}, orNull: answers.some(({ content }) => content === undefined) }
  }
  const tells = answers.some(({ headers = {} }) => Object.keys(headers).some((name) => !REQUEST_ID.test(name)))
  return { kind: contents.length > 0 || method === 'head' || tells || answers.length === 0 ? 'response' : 'nothing' }
}

function resolve<T extends object>(document: Document, node: T | { readonly $ref: string }): T {
  if (!('$ref' in node) || typeof node.$ref !== 'string') return node as T
  const [kind = '', name = ''] = node.$ref.split('/').slice(-2)
  const found = document.components[kind]?.[name]
  if (found === undefined) throw new Error(`${node.$ref} leads nowhere`)
  return found as T
}

/** `getBatch` as other languages write it: `get_batch`. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

const PYTHON_WORDS = [
  'and',
  'as',
  'class',
  'def',
  'for',
  'from',
  'global',
  'if',
  'import',
  'in',
  'is',
  'not',
  'or',
  'with',
]

/** The name of an argument in Python, whose own words it must not be. */
export function toPythonName(name: string): string {
  return PYTHON_WORDS.includes(name) ? `${name}_` : toSnakeCase(name)
}

export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

/** A form that only says which members go together: types cannot tell it, and the service does. */
export function isRule({ $ref, type, properties, items, const: constant, enum: values }: Schema): boolean {
  return [$ref, type, properties, items, constant, values].every((each) => each === undefined)
}

export function isBytes({ format, contentMediaType, type }: Schema): boolean {
  return type === 'string' && (format === 'binary' || contentMediaType === 'application/octet-stream')
}
