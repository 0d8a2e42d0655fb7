/**
 * The paths that ComfyUI's partner nodes call, as data: which exist, what a call there costs, and what may be asked about a
 * task. A path that is not among them is not known to anybody here and is never passed on.
 */
import { findLeaves, type JsonPath, type JsonRecord, type Model } from '../catalog/model.ts'

export const ROUTE_METHODS = ['GET', 'POST', 'DELETE'] as const
type RouteMethod = (typeof ROUTE_METHODS)[number]

interface RoutePath {
  readonly provider: string
  readonly name: string
  readonly method: RouteMethod
  /** Below the provider; `{name}` stands for one segment. */
  readonly segments: readonly string[]
  /** Parameters that the query may hold, and what counts where they are left out; null: they must be there. */
  readonly query: Readonly<Record<string, string | null>>
}

/** Begins a generation, which costs something. */
export interface CallRoute extends RoutePath {
  readonly kind: 'call'
  /** The body is a form, not JSON. */
  readonly isForm: boolean
  /** The value that names the model: of the path, or of the body; null: there is only one. */
  readonly modelAt: string | null
  /** The texts that may hold options for the price, as `--name value`; null: none does. */
  readonly textOptions: TextOptions | null
  /** Members and options that would change the cost in a way that no price here counts, and why each is refused. */
  readonly unpriced: ReadonlyMap<string, string>
  /** By the name that callers use. */
  readonly models: ReadonlyMap<string, Model>
  /** The node polls the task by itself. */
  readonly isTask: boolean
}

/** Asks about a task, or for what it made. It costs nothing, and is passed on only for a task of the same account. */
export interface AskRoute extends RoutePath {
  readonly kind: 'ask'
  /** The path, query or body value that holds the provider's name of the task. */
  readonly task: string
  /** The path at the provider, with the same names in braces. */
  readonly to: string
  /** The provider wants the body as well. */
  readonly sendsBody: boolean
}

export type PartnerRoute = CallRoute | AskRoute

export interface FoundRoute {
  readonly route: PartnerRoute
  readonly params: Readonly<Record<string, string>>
}

export interface PartnerRoutes {
  find(provider: string, method: string, path: string): FoundRoute | null
  /** For the `Allow` header. */
  methodsOf(provider: string, path: string): readonly string[]
  /** Every model that a route runs: in no list of the catalogue, but found by the calls that run them. */
  readonly models: readonly Model[]
}

// Ids and names of models. Longer ones are nobody's.
const VALUE = /^[A-Za-z0-9][A-Za-z0-9._:~-]{0,199}$/

export function createPartnerRoutes(routes: readonly PartnerRoute[]): PartnerRoutes {
  const byProvider = Map.groupBy(routes, ({ provider }) => provider)
  const match = (provider: string, path: string) => {
    const parts = path.split('/').slice(1)
    return (byProvider.get(provider) ?? []).flatMap((route) => {
      const params = readParams(route.segments, parts)
      return params === null ? [] : [{ route, params }]
    })
  }
  return {
    find: (provider, method, path) => match(provider, path).find(({ route }) => route.method === method) ?? null,
    methodsOf: (provider, path) => [...new Set(match(provider, path).map(({ route }) => route.method))],
    models: routes.flatMap((route) => (route.kind === 'call' ? [...route.models.values()] : [])),
  }
}

function readParams(segments: readonly string[], parts: readonly string[]): Record<string, string> | null {
  if (segments.length !== parts.length) return null
  const params: Record<string, string> = {}
  for (const [index, segment] of segments.entries()) {
    const part = parts[index]
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined ? segment !== part : !VALUE.test(part)) return null
    if (name !== undefined) params[name] = part
  }
  return params
}

/** The id under which a call of a route is recorded: the model, and behind it the route. */
export function toPartnerModelId(provider: string, model: string, route: string): string {
  return `${provider}/${model}@${route}`
}

/** The id that limits of accounts go by. */
export function toCatalogId(id: string): string {
  return id.split('@', 1)[0] ?? id
}

/**
 * Options that a node writes into its prompt, `--resolution 1080p --duration 10`, as some providers take them. They decide the
 * price as fields would, so they count as fields; what is sent stays as it came. Some have short names, which are data.
 */
interface TextOptions {
  /** The texts that may hold them. */
  readonly path: JsonPath
  /** By a short name, the full one. */
  readonly names: ReadonlyMap<string, string>
}

type TextOption = readonly [name: string, value: string]

const OPTION = /(?:^|\s)--([A-Za-z_-]{1,40})[\s=]+(\S{1,40})/g
// Far above any prompt; all of it is searched in one go.
export const OPTION_TEXTS_MAX_LENGTH = 100_000

/** In order, those that are given several times included; null: the texts are longer than any that is searched. */
export function readTextOptions(fields: JsonRecord, { path, names }: TextOptions): readonly TextOption[] | null {
  const texts = findLeaves(fields, path).flatMap(({ value }) => (typeof value === 'string' ? [value] : []))
  if (texts.reduce((sum, { length }) => sum + length, 0) > OPTION_TEXTS_MAX_LENGTH) return null
  const options = texts.flatMap((text) => [...text.matchAll(OPTION)])
  return options.map(([, name, value]) => [names.get(name) ?? name, value])
}
