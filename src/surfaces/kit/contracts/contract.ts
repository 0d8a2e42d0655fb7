/**
 * A surface's contract, loaded once. The same document checks requests, is served to callers, renders the reference page and
 * tells which methods a path has.
 */

import { readFileSync } from 'node:fs'
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { type Examples, readExamples, withExamples } from '../../../../lib/openapi/examples.ts'
import { compileMethods, type MethodsOf, type PathMethods } from '../guards/routes.ts'
import { DEFAULT_BRANDS } from '../request.ts'

/** What is wrong with a value, naming the field under `label`, or null. Never repeats a value: it may be a secret. */
export type ContractCheck = (schemaName: string, value: unknown, label: string) => string | null

export interface Contract extends ServedDocument {
  readonly check: ContractCheck
}

interface ContractOptions extends LoadOptions {
  /** The document, as a file. */
  readonly source: URL
  /** The schemas that requests are checked against. */
  readonly requestSchemas: readonly string[]
}

export function openContract({ source, requestSchemas, ...options }: ContractOptions): Contract {
  const served = loadOpenApi(source, options)
  return { ...served, check: compileChecks(served.document, requestSchemas) }
}

/** Each schema is compiled when the first request needs it: compiling all of them would take a good part of a start. */
function compileChecks(document: OpenApiDocument, requestSchemas: readonly string[]): ContractCheck {
  const names = new Set(requestSchemas)
  const validators = new Map<string, ValidateFunction>()
  let ajv: Ajv2020 | null = null

  function validatorOf(name: string): ValidateFunction {
    const known = validators.get(name)
    if (known !== undefined) return known
    if (!names.has(name)) throw new Error(`the schema ${name} is not among those of requests`)
    ajv ??= openSchemas(document)
    const validate = ajv.compile({ $ref: `spec#/components/schemas/${name}` })
    validators.set(name, validate)
    return validate
  }

  return (schemaName, value, label) => {
    const validate = validatorOf(schemaName)
    if (validate(value)) return null
    const errors = validate.errors ?? []
    return toProblem(errors.find((error) => wordsOf(error) !== null) ?? findTelling(errors), label)
  }
}

function openSchemas(document: OpenApiDocument): Ajv2020 {
  // OpenAPI's own keywords stand beside the schema ones, so unknown keywords are no mistake here.
  // That the document itself is sound is known: checking it against the language of schemas would take most of the time here.
  const ajv = new Ajv2020({
    strict: false,
    validateSchema: false,
    validateFormats: false,
    allErrors: false,
    verbose: true,
  })
  ajv.addSchema(document, 'spec')
  return ajv
}

/**
 * The error that says most. Where a value may have one of several forms, every form complains of it: the one that it comes close to is
 * told, and all of them when it is of another type altogether.
 */
function findTelling(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const choice = errors.find(({ keyword }) => keyword === 'anyOf')
  if (choice === undefined) return errors[0]
  const own = errors.filter((error) => error !== choice)
  const isClose = ({ keyword, instancePath }: ErrorObject) => keyword !== 'type' || instancePath !== choice.instancePath
  const types = own.map(({ params }) => String(params['type']))
  return own.find(isClose) ?? { ...choice, message: `must be ${[...new Set(types)].join(' or ')}` }
}

/** What the schema itself says about a value that does not fit, where a pattern would tell a person nothing. */
function wordsOf({ parentSchema }: ErrorObject): string | null {
  const words: unknown = parentSchema?.['x-error']
  return typeof words === 'string' ? words : null
}

function toProblem(error: ErrorObject | undefined, label: string): string {
  if (error === undefined) return `${label} is not valid`
  const where = label + error.instancePath.replaceAll('/', '.')
  const { additionalProperty, allowedValues } = error.params as {
    readonly additionalProperty?: string
    readonly allowedValues?: readonly unknown[]
  }
  if (additionalProperty !== undefined)
    return `${where} has a key that is not allowed: ${JSON.stringify(additionalProperty.slice(0, 64))}${toKnown(error)}`
  if (allowedValues !== undefined) return `${where} must be one of ${allowedValues.join(', ')}`
  return `${where} ${wordsOf(error) ?? error.message ?? 'is not valid'}`
}

/** The keys that are allowed instead, as far as the schema names them. */
function toKnown({ parentSchema }: ErrorObject): string {
  const names = Object.keys((parentSchema as { readonly properties?: object } | undefined)?.properties ?? {})
  return names.length === 0 ? '' : `; allowed are ${names.join(', ')}`
}

/**
 * A contract as this service serves it: with the address at which the caller reached us, with its branded names once per brand,
 * and as the source of which methods a path has.
 */
interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, object>> }>>
    readonly headers: Readonly<Record<string, object>>
  }
  readonly [member: string]: unknown
}

export interface ServedDocument {
  readonly document: OpenApiDocument
  /** The same with its examples, which are read when this is first called. */
  shown(): OpenApiDocument
  readonly paths: readonly PathMethods[]
  /** The document as text, with this base as its only server. */
  textFor(baseUrl: string): string
  readonly methodsOf: MethodsOf
}

const CANONICAL_BRAND = DEFAULT_BRANDS[0]
// As many texts as there are ways to reach one service; more would only be a caller playing with Host.
const TEXTS_MAX = 16

export interface LoadOptions {
  readonly brands?: readonly string[]
  /** Whether this service asks for credentials: the same contract is served with and without. */
  readonly needsCredentials: boolean
  /** The same for operations that are the operator's; left out: as for all others. */
  readonly needsAdminToken?: boolean
  /** Left out: every path of the contract exists here. */
  readonly hasPath?: (template: string) => boolean
}

export function loadOpenApi(source: URL, options: LoadOptions): ServedDocument {
  const { brands = DEFAULT_BRANDS, hasPath = () => true } = options
  const whole = withBrands(JSON.parse(readFileSync(source, 'utf8')) as OpenApiDocument, brands)
  const existing = Object.entries(whole.paths).filter(([template]) => hasPath(template))
  const document = withSecurity({ ...whole, paths: Object.fromEntries(existing) }, options)
  const paths = toPaths(document)
  const texts = new BoundedMap<string, string>(TEXTS_MAX)
  let examples: Examples | null = null
  const shown = () => {
    examples ??= readExamples(source)
    return withExamples(document, examples)
  }
  return {
    document,
    shown,
    textFor(baseUrl) {
      const known = texts.get(baseUrl)
      if (known !== undefined) return known
      const text = JSON.stringify({ ...shown(), servers: [{ url: baseUrl }] })
      texts.set(baseUrl, text)
      return text
    },
    paths,
    methodsOf: compileMethods(paths),
  }
}

function toPaths(document: OpenApiDocument): PathMethods[] {
  return Object.entries(document.paths).map(([template, item]) => ({
    template,
    methods: Object.keys(item).map((method) => method.toUpperCase()),
    isStream: answersWithStream(item['get']),
  }))
}

function answersWithStream(operation: unknown): boolean {
  const { responses } = (operation ?? {}) as { readonly responses?: Readonly<Record<string, { content?: object }>> }
  return Object.hasOwn(responses?.['200']?.content ?? {}, 'text/event-stream')
}

/** Says of each operation whether a credential is needed here. */
function withSecurity(
  document: OpenApiDocument,
  { needsCredentials, needsAdminToken = needsCredentials }: LoadOptions,
): OpenApiDocument {
  const rule = (all: unknown) => {
    const ways = (all as readonly object[]).filter((way) => Object.keys(way).length > 0)
    const isOperators = ways.some((way) => 'adminToken' in way)
    return (isOperators ? needsAdminToken : needsCredentials) ? ways : []
  }
  const paths = Object.entries(document.paths).map(([template, item]) => {
    const operations = Object.entries(item).map(([method, operation]) => [
      method,
      'security' in operation ? { ...operation, security: rule(operation.security) } : operation,
    ])
    return [template, Object.fromEntries(operations)]
  })
  return { ...document, security: rule(document['security']), paths: Object.fromEntries(paths) }
}

/** Every member named after the canonical brand is repeated once per brand; other brands' names are dropped. */
function withBrands(document: OpenApiDocument, brands: readonly string[]): OpenApiDocument {
  if (brands.join() === DEFAULT_BRANDS.join()) return document
  const others = DEFAULT_BRANDS.filter((brand) => brand !== CANONICAL_BRAND)
  return rebrand(document) as OpenApiDocument

  function rebrand(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(rebrand)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).flatMap(([name, member]) => rename(name, rebrand(member))))
  }

  function rename(name: string, member: unknown): [string, unknown][] {
    if (others.some((brand) => isNamedAfter(name, brand))) return []
    if (!isNamedAfter(name, CANONICAL_BRAND)) return [[name, member]]
    const branded = (text: string, brand: string) =>
      text
        .replace(`X-${CANONICAL_BRAND}-`, `X-${brand}-`)
        .replace(`_${CANONICAL_BRAND.toLowerCase()}_org`, `_${brand.toLowerCase()}_org`)
    return brands.map((brand) => [branded(name, brand), JSON.parse(branded(JSON.stringify(member), brand))])
  }
}

function isNamedAfter(name: string, brand: string): boolean {
  return name.startsWith(`X-${brand}-`) || name.endsWith(`_${brand.toLowerCase()}_org`)
}
