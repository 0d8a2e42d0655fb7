/**
 * A contract as this service serves it: with the address at which the caller reached us, with its branded names once per brand,
 * and as the source of which methods a path has.
 */
import { readFileSync } from 'node:fs'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { DEFAULT_BRANDS } from '../request-identity.ts'
import { compileMethods, type MethodsOf, type PathMethods } from './path-methods.ts'

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, object>> }>>
    readonly headers: Readonly<Record<string, object>>
  }
  readonly [member: string]: unknown
}

export interface ServedDocument {
  readonly document: OpenApiDocument
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
  return {
    document,
    textFor(baseUrl) {
      const known = texts.get(baseUrl)
      if (known !== undefined) return known
      const text = JSON.stringify({ ...document, servers: [{ url: baseUrl }] })
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
  }))
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
