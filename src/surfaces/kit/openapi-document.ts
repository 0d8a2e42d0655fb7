/**
 * A contract as this service serves it: with the address at which the caller reached us, with its branded names once per brand,
 * and as the source of which methods a path has.
 */
import { readFileSync } from 'node:fs'
import { DEFAULT_BRANDS } from './request-id.ts'

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
  /** The document as text, with this base as its only server. */
  textFor(baseUrl: string): string
  /** Methods of a path below the mount; empty when the path is none of ours. */
  methodsOf(path: string): readonly string[]
}

const CANONICAL_BRAND = DEFAULT_BRANDS[0]
// As many texts as there are ways to reach one service; more would only be a caller playing with Host.
const TEXTS_MAX = 16

export function loadOpenApi(source: URL, brands: readonly string[] = DEFAULT_BRANDS): ServedDocument {
  const document = withBrands(JSON.parse(readFileSync(source, 'utf8')) as OpenApiDocument, brands)
  const texts = new Map<string, string>()
  return {
    document,
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

function compileMethods(document: OpenApiDocument): ServedDocument['methodsOf'] {
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
