/**
 * The endpoints of an account: published from files, moved between versions, removed. A publish that would break the calls of those who
 * use the current version is refused unless its author says that this is meant. What a call names is found here, too.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../errors.ts'
import type { ConvertWarning } from '../workflows/convert/prompt/write-prompt.ts'
import type { Missing } from '../workflows/needs.ts'
import type { Endpoint, EndpointInput, EndpointSettings, EndpointVersion, VersionContent } from './endpoint.ts'
import type { EndpointChange, EndpointKey, EndpointStore, VersionSummary } from './endpoint-store.ts'
import { compareVersions, hashVersion, type VersionDifference } from './versions.ts'

/** What a file would become. */
export interface Draft extends VersionContent {
  /** null: the author says nothing of it. */
  readonly title: string | null
  readonly description: string | null
  /** Other values of the graph that could be inputs. */
  readonly candidates: readonly EndpointInput[]
  readonly warnings: readonly ConvertWarning[]
  readonly missing: Missing
}

export interface DraftRequest {
  readonly accountId: string
  /** What the editor saved, or a graph in API format. */
  readonly file: JsonValue
  /** What the author says of inputs and outputs; null: everything as proposed. */
  readonly declaration: JsonValue
  /** Whose engines are to run it; left out or null: those of the common pool. */
  readonly deployment?: string | null
}

export interface PublishRequest extends DraftRequest, EndpointKey {
  readonly keyId: string | null
  readonly note: string
  readonly isBreakingMeant: boolean
  /** Left out: as they are. */
  readonly title?: string
  readonly description?: string
  readonly settings?: Partial<EndpointSettings>
}

export interface PublishAnswer {
  readonly endpoint: Endpoint
  readonly version: EndpointVersion
  readonly isNew: boolean
  readonly warnings: readonly ConvertWarning[]
  readonly missing: Missing
  /** To the version that was current before. */
  readonly differences: readonly VersionDifference[]
}

export interface Resolved {
  readonly endpoint: Endpoint
  readonly version: EndpointVersion
  /** What the caller called the version; null: nothing. */
  readonly alias: string | null
}

/** What is left out stays. */
interface WantedChange extends Omit<EndpointChange, 'aliases' | 'settings'> {
  readonly settings?: Partial<EndpointSettings>
}

export interface Endpoints {
  /** Stores nothing. */
  draft(request: DraftRequest): Promise<Draft>
  /** Throws breaking_change. */
  publish(request: PublishRequest): Promise<PublishAnswer>
  find(key: EndpointKey): Promise<Endpoint>
  list(accountId: string, page: { readonly after: string | null; readonly limit: number }): Promise<readonly Endpoint[]>
  /** `revision`: what the caller has seen; null: whatever it is now. Throws revision_mismatch. */
  change(key: EndpointKey, change: WantedChange, revision: number | null): Promise<Endpoint>
  /** Sets, or with null removes, the alias. */
  moveAlias(key: EndpointKey, alias: string, version: number | null): Promise<Endpoint>
  remove(key: EndpointKey): Promise<void>
  /** `reference`: a name, or a name and a version: `portrait`, `portrait@7`, `portrait@stable`, `portrait@latest`. */
  resolve(accountId: string, reference: string): Promise<Resolved>
  /** Of a further name under which image clients ask for an endpoint; null: nobody's. */
  findByModel(accountId: string, model: string): Promise<Endpoint | null>
  /** Equal content may be published under several names. */
  findByHash: EndpointStore['findByHash']
  listVersions(
    key: EndpointKey,
    page: { readonly before: number | null; readonly limit: number },
  ): Promise<readonly VersionSummary[]>
  compare(key: EndpointKey, from: string, to: string): Promise<readonly VersionDifference[]>
}

interface EndpointsDeps {
  readonly store: EndpointStore
  readonly clock: Clock
  readonly draft: (request: DraftRequest) => Promise<Draft>
  readonly limit?: number
}

const MAX_ENDPOINTS = 10_000
const MAX_ALIASES = 50
const MAX_NOTE = 2000
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// They stand in addresses where a name could stand, or mean something to callers already.
const RESERVED: ReadonlySet<string> = new Set(['preview', 'import', 'openapi', 'runs', 'versions'])
const ALIAS = /^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/
const NUMBER = /^[1-9]\d{0,8}$/
const TRIES = 5

const DEFAULT_SETTINGS: EndpointSettings = { deployment: null, isTool: true, models: [] }

export function createEndpoints(deps: EndpointsDeps): Endpoints {
  const { store, clock, draft } = deps
  const versions = createVersionReader(store)

  async function find(key: EndpointKey): Promise<Endpoint> {
    const endpoint = NAME.test(key.name) ? await store.find(key) : null
    if (endpoint === null) throw noEndpoint()
    return endpoint
  }

  async function resolve(accountId: string, reference: string): Promise<Resolved> {
    const { name, selector } = readReference(reference)
    const endpoint = await find({ accountId, name })
    const number = selectVersion(endpoint, selector)
    const version = await versions(endpoint, number)
    if (version === null) throw noVersion(name, selector ?? String(number))
    return { endpoint, version, alias: selector !== null && !NUMBER.test(selector) ? selector : null }
  }

  /** `decide` is asked again where the endpoint has changed meanwhile. */
  async function change(
    key: EndpointKey,
    decide: (endpoint: Endpoint) => EndpointChange,
    revision: number | null,
  ): Promise<Endpoint> {
    for (let tried = 1; ; tried++) {
      const endpoint = await find(key)
      if (revision !== null && endpoint.revision !== revision) throw revisionMismatch(key.name)
      const wanted = decide(endpoint)
      await checkChange(endpoint, wanted)
      const changed = await store.change(key, endpoint.revision, wanted, clock.now())
      if (changed !== null) return changed
      if (revision !== null || tried === TRIES) throw revisionMismatch(key.name)
    }
  }

  /** Every version that is named must exist. */
  async function checkChange(endpoint: Endpoint, { currentVersion, aliases, ...texts }: EndpointChange): Promise<void> {
    checkTexts(texts)
    for (const number of [...(currentVersion === undefined ? [] : [currentVersion]), ...Object.values(aliases ?? {})])
      if ((await versions(endpoint, number)) === null) throw noVersion(endpoint.name, String(number))
  }

  return {
    draft,
    find,
    resolve,
    change: (key, { settings, ...wanted }, revision) =>
      change(
        key,
        (endpoint) => ({ ...wanted, ...(settings && { settings: { ...endpoint.settings, ...settings } }) }),
        revision,
      ),
    list: (accountId, page) => store.list(accountId, page),
    findByModel: (accountId, model) => store.findByModel(accountId, model),
    findByHash: (accountId, hash) => store.findByHash(accountId, hash),
    publish: createPublish({ ...deps, limit: deps.limit ?? MAX_ENDPOINTS }, versions),
    async moveAlias(key, alias, version) {
      if (!ALIAS.test(alias) || alias === 'latest')
        throw invalidField(
          'alias',
          'must be 1 to 32 small letters, digits or dashes that begin with a letter, and not latest',
        )
      return change(key, ({ aliases }) => ({ aliases: withAlias(aliases, alias, version) }), null)
    },
    async remove(key) {
      if (!(NAME.test(key.name) && (await store.remove(key, clock.now())))) throw noEndpoint()
    },
    async listVersions(key, page) {
      await find(key)
      return store.listVersions(key, page)
    },
    async compare({ accountId, name }, from, to) {
      const [older, newer] = await Promise.all([from, to].map((each) => resolve(accountId, `${name}@${each}`)))
      return compareVersions(older.version, newer.version)
    },
  }
}

/** Judged by the version that is current; where another publish came between, judged anew by what that left. */
function createPublish(
  { store, clock, draft, limit }: Required<EndpointsDeps>,
  versions: FindVersion,
): Endpoints['publish'] {
  return async (request) => {
    const { accountId, name } = request
    mustBeName(name)
    checkTexts(request)
    const made = await draft({ ...request, deployment: request.settings?.deployment ?? null })
    for (let tried = 1; tried <= TRIES; tried++) {
      const before = await store.find({ accountId, name })
      const current = before === null ? null : await versions(before, before.currentVersion)
      const differences = current === null ? [] : compareVersions(current, made)
      mustNotBreak(name, differences, request.isBreakingMeant)
      const published = await store.publish(toPublish(request, made, { before, at: clock.now(), limit }))
      if (published.outcome === 'too_many') throw tooMany(limit)
      if (published.outcome === 'changed') continue
      const { endpoint, version, isNew } = published
      return { endpoint, version, isNew, warnings: made.warnings, missing: made.missing, differences }
    }
    throw revisionMismatch(name)
  }
}

function withAlias(aliases: Endpoint['aliases'], alias: string, version: number | null): Endpoint['aliases'] {
  const { [alias]: _, ...others } = aliases
  if (version === null) return others
  if (Object.keys(others).length === MAX_ALIASES)
    throw invalidField('alias', `is one more than the ${MAX_ALIASES} that an endpoint may have`)
  return { ...others, [alias]: version }
}

interface PublishFacts {
  readonly before: Endpoint | null
  readonly at: Date
  readonly limit: number
}

function toPublish(request: PublishRequest, made: Draft, { before, at, limit }: PublishFacts) {
  const { accountId, name, note, keyId } = request
  const title = request.title ?? made.title
  const description = request.description ?? made.description
  const { graph, inputs, outputs, required } = made
  const content = { graph, inputs, outputs, required }
  return {
    accountId,
    name,
    limit,
    revision: before?.revision ?? null,
    texts: {
      ...(before === null && { title: name, description: '' }),
      ...(title !== null && { title }),
      ...(description !== null && { description }),
      settings: { ...DEFAULT_SETTINGS, ...before?.settings, ...request.settings },
    },
    version: { ...content, hash: hashVersion(content), note, createdAt: at, createdBy: keyId },
  }
}

/** Versions never change, so those that are called are kept. */
type FindVersion = (key: EndpointKey, number: number) => Promise<EndpointVersion | null>

function createVersionReader(store: Pick<EndpointStore, 'findVersion'>): FindVersion {
  const kept = new BoundedMap<string, EndpointVersion>(MAX_KEPT_VERSIONS)
  return async ({ accountId, name }, number) => {
    const id = JSON.stringify([accountId, name, number])
    const known = kept.get(id)
    if (known !== undefined) return known
    const version = await store.findVersion({ accountId, name }, number)
    if (version !== null && version.graph.length <= MAX_KEPT_LENGTH) kept.set(id, version)
    return version
  }
}

const MAX_KEPT_VERSIONS = 256
const MAX_KEPT_LENGTH = 131_072

function readReference(reference: string): { readonly name: string; readonly selector: string | null } {
  const at = reference.indexOf('@')
  return at === -1
    ? { name: reference, selector: null }
    : { name: reference.slice(0, at), selector: reference.slice(at + 1) }
}

function selectVersion({ name, currentVersion, lastVersion, aliases }: Endpoint, selector: string | null): number {
  if (selector === null) return currentVersion
  if (NUMBER.test(selector)) return Number(selector)
  if (selector === 'latest') return lastVersion
  if (!Object.hasOwn(aliases, selector)) throw noVersion(name, selector)
  return aliases[selector]
}

function mustBeName(name: string): void {
  if (!NAME.test(name))
    throw invalidField('name', 'must be 1 to 63 small letters, digits or dashes, with a letter or digit at both ends')
  if (RESERVED.has(name))
    throw invalidField('name', `must not be ${name}, which stands for something else in addresses`)
}

interface Texts {
  readonly title?: string
  readonly description?: string
  readonly note?: string
  readonly settings?: Partial<EndpointSettings>
}

const MAX_TITLE = 200
const MAX_DESCRIPTION = 20_000
const MAX_MODELS = 20

function checkTexts({ title = '', description = '', note = '', settings }: Texts): void {
  if (title.length > MAX_TITLE) throw invalidField('title', `must have at most ${MAX_TITLE} characters`)
  if (description.length > MAX_DESCRIPTION)
    throw invalidField('description', `must have at most ${MAX_DESCRIPTION} characters`)
  if (note.length > MAX_NOTE) throw invalidField('note', `must have at most ${MAX_NOTE} characters`)
  if ((settings?.models?.length ?? 0) > MAX_MODELS) throw invalidField('models', `must be at most ${MAX_MODELS} names`)
}

/** Throws breaking_change. */
function mustNotBreak(name: string, differences: readonly VersionDifference[], isMeant: boolean): void {
  const breaking = differences.filter(({ isBreaking }) => isBreaking)
  if (isMeant || breaking.length === 0) return
  throw new ServiceError(
    'breaking_change',
    `this would break callers of ${name}: ${breaking.map(({ message }) => message).join('; ')}. Say that it is meant to publish it all the same`,
    { details: { breaking: breaking.map(({ kind, name: what, message }) => ({ kind, name: what, message })) } },
  )
}

function noEndpoint(): ServiceError {
  return new ServiceError('not_found', 'there is no endpoint with this name')
}

function noVersion(name: string, selector: string): ServiceError {
  return new ServiceError('not_found', `the endpoint ${name} has no version ${JSON.stringify(selector.slice(0, 64))}`)
}

function revisionMismatch(name: string): ServiceError {
  return new ServiceError('revision_mismatch', `the endpoint ${name} was changed meanwhile; read it and decide again`)
}

function tooMany(limit: number): ServiceError {
  return invalidField(
    'name',
    `would be one more than the ${limit} endpoints that an account may have; remove some first`,
  )
}
