/**
 * A surface's contract, loaded once. The same document checks requests, is served to callers, renders the reference page and tells
 * which methods a path has. With other brands than the default ones, the branded names in it follow the brands.
 */
import { readFileSync } from 'node:fs'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { DEFAULT_BRANDS } from './request-id.ts'

/** What is wrong with a value, naming the field under `label`, or null. Never repeats a value: it may be a secret. */
export type SpecCheck = (schemaName: string, value: unknown, label: string) => string | null

export interface Spec {
  readonly document: OpenApiDocument
  readonly check: SpecCheck
  /** The document as text, with this base as its only server. */
  textFor(baseUrl: string): string
  /** Methods of a path below the mount; empty when the path is none of ours. */
  methodsOf(path: string): readonly string[]
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, object>> }>>
    readonly headers: Readonly<Record<string, object>>
  }
  readonly [member: string]: unknown
}

const CANONICAL_BRAND = DEFAULT_BRANDS[0]
// As many texts as there are ways to reach one service; more would only be a caller playing with Host.
const TEXTS_MAX = 16

export interface SpecOptions {
  /** The document, as a file. */
  readonly source: URL
  readonly brands?: readonly string[]
  /** The schemas that requests are checked against. */
  readonly requestSchemas: readonly string[]
}

export function openSpec({ source, brands = DEFAULT_BRANDS, requestSchemas }: SpecOptions): Spec {
  const document = withBrands(JSON.parse(readFileSync(source, 'utf8')) as OpenApiDocument, brands)
  const texts = new Map<string, string>()
  return {
    document,
    check: compileChecks(document, requestSchemas),
    textFor(baseUrl) {
      const known = texts.get(baseUrl)
      if (known !== undefined) return known
      const text = JSON.stringify({ ...document, servers: [{ url: baseUrl }] })
      if (texts.size >= TEXTS_MAX) texts.clear()
      texts.set(baseUrl, text)
      return text
    },
    methodsOf: compileMethods(document),
  }
}

function compileChecks(document: OpenApiDocument, requestSchemas: readonly string[]): SpecCheck {
  // OpenAPI's own keywords stand beside the schema ones, so unknown keywords are no mistake here.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false })
  ajv.addSchema(document, 'spec')
  const validators = new Map(
    requestSchemas.map((name) => [name, ajv.compile({ $ref: `spec#/components/schemas/${name}` })] as const),
  )
  return (schemaName, value, label) => {
    const validate = validators.get(schemaName)
    if (validate === undefined) throw new Error(`the schema ${schemaName} is not compiled`)
    return validate(value) ? null : toProblem(validate.errors?.[0], label)
  }
}

function toProblem(error: ErrorObject | undefined, label: string): string {
  if (error === undefined) return `${label} is not valid`
  const where = label + error.instancePath.replaceAll('/', '.')
  const unknownKey = (error.params as { additionalProperty?: string }).additionalProperty
  if (unknownKey !== undefined)
    return `${where} has a key that is not allowed: ${JSON.stringify(unknownKey.slice(0, 64))}`
  return `${where} ${error.message ?? 'is not valid'}`
}

function compileMethods(document: OpenApiDocument): Spec['methodsOf'] {
  const routes = Object.entries(document.paths).map(([template, item]) => ({
    pattern: new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    methods: Object.keys(item).map((method) => method.toUpperCase()),
  }))
  return (path) => {
    const methods = new Set(routes.filter((route) => route.pattern.test(path)).flatMap((route) => route.methods))
    // Whatever can be read can be asked about, except a stream, which would never end.
    if (methods.has('GET') && !path.endsWith('/events')) methods.add('HEAD')
    return [...methods].sort()
  }
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
