/**
 * Reads `nodes.json` of a provider: the paths that ComfyUI's partner nodes call. A route that costs something has the rules of a
 * model file in `adapter`, and a price for every model that it serves: its own, or that of a model in the catalogue. A model
 * without a price is not served. docs/adapters.md explains the file.
 */
import { FieldReader } from '../../../domain/models/catalog/field-reader.ts'
import {
  isRecord,
  type Json,
  type JsonRecord,
  type Model,
  type PriceRule,
} from '../../../domain/models/catalog/model.ts'
import {
  type AskRoute,
  type CallRoute,
  type PartnerRoute,
  ROUTE_METHODS,
  toPartnerModelId,
} from '../../../domain/models/partner/partner-route.ts'
import { readPriceRule } from '../../../domain/models/pricing/read-price-rule.ts'
import { namesIn, type ProviderRules } from '../declarative/rules/rule-types.ts'
import { checkModelRules } from '../declarative/rules/rules-schema.ts'

interface ReadRoutesDeps {
  readonly rules: ProviderRules
  /** The price of a model in the catalogue; null: there is no such model. */
  readonly priceOf: (id: string) => PriceRule | null
  /** The rules were checked before. */
  readonly isChecked: boolean
}

interface ReadRoutes {
  readonly routes: readonly PartnerRoute[]
  readonly problems: readonly string[]
}

const PATH = /^(\/[A-Za-z0-9._:~-]+|\/\{[a-z_]+\})+\/?$/
const SECOND_MS = 1000

export function readPartnerRoutes(document: Json, deps: ReadRoutesDeps): ReadRoutes {
  const problems: string[] = []
  const file = FieldReader.open(document, '', problems)
  const routes = file.records('routes').map((route) => readRoute(route, deps, problems))
  file.refuseOthers()
  const names = routes.map(({ name }) => name)
  for (const name of new Set(names)) {
    if (names.indexOf(name) !== names.lastIndexOf(name)) problems.push(`routes has the name ${name} several times`)
  }
  return { routes: problems.length === 0 ? routes : [], problems }
}

function readRoute(route: FieldReader, deps: ReadRoutesDeps, problems: string[]): PartnerRoute {
  const name = route.text('name', { fallback: '' })
  const path = route.text('path', { fallback: '/' })
  if (!PATH.test(path)) route.problem('path', 'must look like /videos/{id}')
  const about = {
    provider: deps.rules.provider,
    name,
    segments: path.split('/').slice(1),
    query: readQuery(route),
  }
  const read = route.has('task')
    ? readAsk(route, { ...about, method: route.choice('method', ROUTE_METHODS, 'GET') })
    : readCall(route, { ...about, method: route.choice('method', ROUTE_METHODS, 'POST') }, deps, problems)
  route.refuseOthers()
  return read
}

type About = Pick<CallRoute, 'provider' | 'name' | 'segments' | 'query' | 'method'>

function readQuery(route: FieldReader): Record<string, string | null> {
  const query = route.object('query') ?? {}
  const isText = (value: Json) => value === null || typeof value === 'string'
  if (!Object.values(query).every(isText)) route.problem('query', 'must give a text or null for each parameter')
  return query as Record<string, string | null>
}

function readAsk(route: FieldReader, about: About): AskRoute {
  const task = route.text('task', { fallback: '' })
  const to = route.text('to', { fallback: '/' })
  const sendsBody = route.value('sends_body') === true
  const known = [...valuesOf(about), ...(about.method === 'POST' ? [task] : [])]
  for (const value of [task, ...namesIn(to).filter((one) => !one.startsWith('setting.'))]) {
    if (!known.includes(value)) route.problem('to', `names ${value}, which is neither in the path nor in the query`)
  }
  return { ...about, kind: 'ask', task, to, sendsBody }
}

function valuesOf({ segments, query }: Pick<About, 'segments' | 'query'>): string[] {
  const inPath = segments.flatMap((segment) => /^\{(\w+)\}$/.exec(segment)?.[1] ?? [])
  return [...inPath, ...Object.keys(query)]
}

function readCall(route: FieldReader, about: About, deps: ReadRoutesDeps, problems: string[]): CallRoute {
  const field = route.optionalText('model_field')
  const isForm = route.value('form') === true
  const textOptions = readTextOptions(route)
  const unpriced = readTexts(route, 'unpriced', 'must say for each name why it is refused')
  const adapter = route.object('adapter') ?? {}
  const told = route.object('told')
  const operations = readOperations(adapter, { isForm, told: told ?? {} })
  const isTask = operations.some((operation) => operation['returns'] === 'task')
  if (told !== null && !isTask) route.problem('told', 'is for routes whose operations return a task')
  const modelAt = field ?? (about.segments.includes('{model}') ? 'model' : null)
  const prices = Object.entries(route.object('models') ?? {})
  if (prices.length === 0) route.problem('models', 'must give a price for at least one model')
  if (prices.length > 1 && modelAt === null)
    route.problem('models', 'has several: name the field that tells them apart in model_field')
  const seconds = route.optionalNumber('deadline_seconds', { min: 1, max: 86_400 })
  const shared = { ...about, adapter: { ...adapter, operations }, isTask, deadlineMs: seconds && seconds * SECOND_MS }
  const models = new Map<string, Model>()
  for (const [name, price] of prices) {
    const rule = readPrice(route, name, price, deps)
    if (rule === null) continue
    const model = toModel(shared, name, rule)
    const found = deps.isChecked ? [] : checkModelRules(model, deps.rules)
    problems.push(...found.map((problem) => `route ${about.name}, ${name}: ${problem}`))
    models.set(name, model)
  }
  return { ...about, kind: 'call', isForm, modelAt, textOptions, unpriced, models, isTask }
}

function readTextOptions(route: FieldReader): CallRoute['textOptions'] {
  const names = readTexts(route, 'text_option_names', 'must give the full name for each short one')
  return route.has('text_options') ? { path: route.path('text_options'), names } : null
}

function readTexts(route: FieldReader, field: string, rule: string): ReadonlyMap<string, string> {
  const pairs = Object.entries(route.object(field) ?? {})
  const isText = (pair: [string, Json]): pair is [string, string] => typeof pair[1] === 'string'
  if (!pairs.every(isText)) route.problem(field, rule)
  return new Map(pairs.filter(isText))
}

/** Every task is told to the node, and every form goes on as it came. */
function readOperations(adapter: JsonRecord, { isForm, told }: { isForm: boolean; told: JsonRecord }): JsonRecord[] {
  const listed = adapter['operations']
  const operations = Array.isArray(listed) ? (listed as readonly Json[]).filter(isRecord) : []
  return operations.map((operation) => ({
    ...operation,
    ...(isForm && { encoding: 'as_sent' }),
    ...(operation['returns'] === 'task' && { told }),
  }))
}

function readPrice(route: FieldReader, name: string, price: Json, deps: ReadRoutesDeps): PriceRule | null {
  if (typeof price === 'string') {
    const rule = deps.priceOf(price)
    if (rule === null) route.problem('models', `takes the price of ${price}, which is not a model of this catalogue`)
    return rule
  }
  const problems: string[] = []
  const rule = readPriceRule(FieldReader.open(price, name, problems), { canRun: true })
  for (const problem of problems) route.problem('models', problem)
  return problems.length === 0 ? rule : null
}

interface SharedParts extends About {
  readonly adapter: JsonRecord
  readonly isTask: boolean
  readonly deadlineMs: number | null
}

function toModel(shared: SharedParts, name: string, price: PriceRule): Model {
  const { provider, adapter, isTask, deadlineMs } = shared
  // The values of path and query are inputs, too: the address at the provider may need them.
  const properties = Object.fromEntries(valuesOf(shared).map((value) => [value, {}]))
  return {
    id: toPartnerModelId(provider, name, shared.name),
    provider,
    model: name,
    state: 'unreleased',
    successor: null,
    entitlement: null,
    chargesOnPolicyRejection: 'unknown',
    input: { schema: { properties }, modelField: null, modelName: name, modalities: [], example: null },
    output: { schema: null, mediaType: null, modalities: [] },
    returns: isTask ? 'poll' : 'direct',
    price,
    deadlineMs,
    hosting: null,
    adapter,
  }
}
