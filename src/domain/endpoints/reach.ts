/**
 * Which endpoints and versions somebody finds. A key may be restricted to some: for it all others look as if they did not exist, and a
 * call that names no version gets the current one, or the first that the key was given.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'
import { isAccountId } from '../accounts/account.ts'
import type { Caller } from '../accounts/caller.ts'
import { ServiceError } from '../errors.ts'
import { type Endpoint, type EndpointVersion, mayCall, nameFor } from './endpoint.ts'
import type { EndpointKey, EndpointStore, VersionSummary } from './endpoint-store.ts'
import { isName, type Offered, type ReadEndpoints } from './offered.ts'
import { compareVersions, type VersionDifference } from './versions.ts'

/** Who asks, and which endpoints they reach. */
export type EndpointCaller = Pick<Caller, 'accountId' | 'endpoints'>

export interface Resolved extends Offered {
  /** What the caller called the version; null: nothing. */
  readonly alias: string | null
}

/** Each throws not_found for what is not there, or out of reach. */
export interface Reach {
  find(caller: EndpointCaller, name: string): Promise<Endpoint>
  list(
    caller: EndpointCaller,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly Endpoint[]>
  /** What other accounts let this one call, by owner and name. `after`: the last of the page before, as `owner/name`. */
  listShared(
    caller: EndpointCaller,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly Endpoint[]>
  /** `reference`: a name, or a name and a version: `portrait`, `portrait@7`, `portrait@stable`, `portrait@latest`. */
  resolve(caller: EndpointCaller, reference: string): Promise<Resolved>
  /** As `find`, and likewise. */
  findToCall(caller: EndpointCaller, called: string): Promise<Endpoint>
  /** As `resolve`, and of another account what it lets this one call, as `owner/name`. Only for what callers may see. */
  resolveToCall(caller: EndpointCaller, reference: string): Promise<Resolved>
  /** Of a further name under which image clients ask for an endpoint; null: nobody's. */
  findByModel(caller: EndpointCaller, model: string): Promise<Endpoint | null>
  /** Equal content may be published under several names: the account's own first, then those of other accounts, as `owner/name`. */
  findByHash(caller: EndpointCaller, hash: string): ReturnType<EndpointStore['findByHash']>
  listVersions(
    caller: EndpointCaller,
    name: string,
    page: { readonly before: number | null; readonly limit: number },
  ): Promise<readonly VersionSummary[]>
  compare(
    caller: EndpointCaller,
    name: string,
    versions: { readonly from: string; readonly to: string },
  ): Promise<readonly VersionDifference[]>
}

const NUMBER = /^[1-9]\d{0,8}$/

/** What leads to endpoints of other accounts. */
interface OthersEndpoints {
  /** Without what the service offers. */
  readonly find: EndpointStore['find']
  readonly listShared: EndpointStore['listShared']
  readonly findSharedByHash: EndpointStore['findSharedByHash']
  readonly versions: FindVersion
  /** Whether the account may run anything. */
  readonly isActive: (accountId: string) => boolean
}

/** `findOwn`: whoever asks may reach everything. `others` left out: no account reaches what another one has. */
export function createReach(
  store: Omit<ReadEndpoints, 'findVersion'>,
  versions: FindVersion,
  others: OthersEndpoints | null = null,
): Reach & { readonly findOwn: (key: EndpointKey) => Promise<Endpoint> } {
  async function findWithin(caller: EndpointCaller, name: string): Promise<Endpoint> {
    if (!isWithin(caller, name)) throw noEndpoint()
    return findOwn({ accountId: caller.accountId, name })
  }

  async function findOwn(key: EndpointKey): Promise<Endpoint> {
    const endpoint = isName(key.name) ? await store.find(key) : null
    if (endpoint === null) throw noEndpoint()
    return endpoint
  }

  async function resolve(caller: EndpointCaller, reference: string): Promise<Resolved> {
    const { name, selector } = readReference(reference)
    return select(caller, await findWithin(caller, name), { called: name, asked: selector, versions })
  }

  const findToCall = (caller: EndpointCaller, called: string): Promise<Endpoint> => {
    const { owner, name } = readOwner(called)
    return owner === null || owner === caller.accountId ? findWithin(caller, name) : findOthers(others, caller, called)
  }

  async function resolveToCall(caller: EndpointCaller, reference: string): Promise<Resolved> {
    const { name, selector } = readReference(reference)
    const endpoint = await findToCall(caller, name)
    const called = nameFor(caller.accountId, endpoint)
    const read = endpoint.accountId === caller.accountId ? versions : (others?.versions ?? versions)
    return select(caller, endpoint, { called, asked: selector, versions: read })
  }

  async function findMany(accountId: string, names: readonly string[]): Promise<Endpoint[]> {
    const found = await Promise.all(names.map((name) => store.find({ accountId, name })))
    return found.filter((endpoint) => endpoint !== null)
  }

  return {
    findOwn,
    find: findWithin,
    resolve,
    findToCall,
    resolveToCall,
    async list(caller, { after, limit }) {
      if (caller.endpoints === null) return store.list(caller.accountId, { after, limit })
      const names = namesWithin(caller.endpoints).filter((name) => name > (after ?? ''))
      return (await findMany(caller.accountId, names)).slice(0, limit)
    },
    listShared: (caller, page) => listShared(others, caller, page),
    async findByModel(caller, model) {
      const { accountId, endpoints } = caller
      if (endpoints === null) return store.findByModel(accountId, model)
      const found = await findMany(accountId, namesWithin(endpoints))
      return found.find(({ settings }) => settings.models.includes(model)) ?? null
    },
    async findByHash(caller, hash) {
      const found = await store.findByHash(caller.accountId, hash)
      const reachable = await Promise.all(
        found.map(async ({ name, number }) => canReach(caller, await store.find({ ...caller, name }), number)),
      )
      return [...found.filter((_, index) => reachable[index]), ...(await findSharedByHash(others, caller, hash))]
    },
    async listVersions(caller, name, page) {
      const endpoint = await findWithin(caller, name)
      const numbers = numbersWithin(caller, endpoint)
      if (numbers === null) return store.listVersions(endpoint, page)
      const below = numbers.filter((number) => page.before === null || number < page.before).slice(0, page.limit)
      const found = await Promise.all(below.map((number) => versions(endpoint, number)))
      return found.filter((version) => version !== null)
    },
    async compare(caller, name, { from, to }) {
      const [older, newer] = await Promise.all([from, to].map((each) => resolve(caller, `${name}@${each}`)))
      return compareVersions(older.version, newer.version)
    },
  }
}

/** Without what the service offers. */
export function createOwnReach(store: EndpointStore): Reach {
  return createReach(store, createVersionReader(store))
}

/** null: all versions; none: the endpoint is out of reach. */
function selectorsWithin({ endpoints }: EndpointCaller, name: string): readonly string[] | null {
  if (endpoints === null || endpoints.includes(name)) return null
  return endpoints.flatMap((each) => {
    const { name: of, selector } = readReference(each)
    return of === name && selector !== null ? [selector] : []
  })
}

export function isWithin(caller: EndpointCaller, name: string): boolean {
  return selectorsWithin(caller, name)?.length !== 0
}

function namesWithin(endpoints: readonly string[]): string[] {
  return [...new Set(endpoints.map((each) => readReference(each).name))].sort()
}

/** The newest first; null: all versions. */
function numbersWithin(
  caller: EndpointCaller,
  endpoint: Endpoint,
  called: string = endpoint.name,
): readonly number[] | null {
  const selectors = selectorsWithin(caller, called)
  if (selectors === null) return null
  const numbers = selectors.map((selector) => findVersionNumber(endpoint, selector)).filter((number) => number !== null)
  return [...new Set(numbers)].sort((one, other) => other - one)
}

function canReach(caller: EndpointCaller, endpoint: Endpoint | null, number: number): boolean {
  return endpoint !== null && isAmong(numbersWithin(caller, endpoint), number)
}

function isAmong(numbers: readonly number[] | null, number: number): boolean {
  return numbers?.includes(number) !== false
}

interface Selection {
  /** The name by which the caller, and its key, know the endpoint. */
  readonly called: string
  /** null: no version is named. */
  readonly asked: string | null
  readonly versions: FindVersion
}

/** A call that names no version gets the current one, or the first that the key was given. */
async function select(
  caller: EndpointCaller,
  endpoint: Endpoint,
  { called, asked, versions }: Selection,
): Promise<Resolved> {
  const selector = asked ?? selectorsWithin(caller, called)?.[0] ?? null
  const number = findVersionNumber(endpoint, selector)
  if (number === null || !isAmong(numbersWithin(caller, endpoint, called), number))
    throw noVersion(called, selector ?? '')
  const version = await versions(endpoint, number)
  if (version === null) throw noVersion(called, selector ?? String(number))
  const shown = endpoint.accountId === caller.accountId ? version : withoutFiles(version)
  return { endpoint, version: shown, alias: selector !== null && !NUMBER.test(selector) ? selector : null }
}

const SOME_FILE = 'ID-OF-AN-UPLOADED-FILE'

/** What its owner chose as an example is his own. */
function withoutFiles(version: EndpointVersion): EndpointVersion {
  const inputs = version.inputs.map((input) => (input.type === 'file' ? { ...input, example: SOME_FILE } : input))
  return { ...version, inputs }
}

/** One that is not there and one that is not this account's to call are the same to it. */
async function findOthers(others: OthersEndpoints | null, caller: EndpointCaller, called: string): Promise<Endpoint> {
  const { owner, name } = readOwner(called)
  const isNamed = owner !== null && isAccountId(owner) && isName(name) && isWithin(caller, called)
  const endpoint = isNamed && others !== null ? await others.find({ accountId: owner, name }) : null
  if (endpoint === null || !mayCall(caller.accountId, endpoint) || others?.isActive(endpoint.accountId) !== true)
    throw noEndpoint()
  return endpoint
}

/** A key for some endpoints has those of them that it may call; owners who may do nothing share nothing. */
async function listShared(
  others: OthersEndpoints | null,
  caller: EndpointCaller,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly Endpoint[]> {
  if (others === null) return []
  const { accountId, endpoints } = caller
  let from = after === null ? null : toKey(after)
  if (endpoints !== null) {
    const named = namesWithin(endpoints).map(toKey)
    const next = named.filter((key) => key.accountId !== '' && (from === null || isBehind(key, from)))
    const found = await Promise.all(next.toSorted((a, b) => (isBehind(a, b) ? 1 : -1)).map((key) => others.find(key)))
    return found.filter((each) => each !== null && isOpenTo(others, accountId, each)).slice(0, limit) as Endpoint[]
  }
  const listed: Endpoint[] = []
  for (;;) {
    const page = await others.listShared(accountId, { after: from, limit })
    listed.push(...page.filter((each) => isOpenTo(others, accountId, each)))
    const last = page.at(-1)
    if (page.length < limit || listed.length >= limit || last === undefined) return listed.slice(0, limit)
    from = last
  }
}

async function findSharedByHash(others: OthersEndpoints | null, caller: EndpointCaller, hash: string) {
  const found = (await others?.findSharedByHash(caller.accountId, hash)) ?? []
  const places = await Promise.all(
    found.map(async ({ number, ...key }) => {
      const endpoint = await others?.find(key)
      if (endpoint == null || others === null || !isOpenTo(others, caller.accountId, endpoint)) return null
      const name = `${key.accountId}/${key.name}`
      return isAmong(numbersWithin(caller, endpoint, name), number) ? { name, number } : null
    }),
  )
  return places.filter((place) => place !== null)
}

function isOpenTo(others: OthersEndpoints, accountId: string, endpoint: Endpoint): boolean {
  const isOthers = endpoint.accountId !== accountId
  return isOthers && mayCall(accountId, endpoint) && others.isActive(endpoint.accountId)
}

/** By owner, then by name. */
function isBehind(one: EndpointKey, other: EndpointKey): boolean {
  return one.accountId === other.accountId ? one.name > other.name : one.accountId > other.accountId
}

function toKey(called: string): EndpointKey {
  const { owner, name } = readOwner(called)
  return { accountId: owner ?? '', name }
}

/** `owner` null: it names none. */
function readOwner(called: string): { readonly owner: string | null; readonly name: string } {
  const at = called.indexOf('/')
  return at === -1 ? { owner: null, name: called } : { owner: called.slice(0, at), name: called.slice(at + 1) }
}

function readReference(reference: string): { readonly name: string; readonly selector: string | null } {
  const at = reference.indexOf('@')
  return at === -1
    ? { name: reference, selector: null }
    : { name: reference.slice(0, at), selector: reference.slice(at + 1) }
}

/** null: nothing has this name. */
function findVersionNumber({ currentVersion, lastVersion, aliases }: Endpoint, selector: string | null): number | null {
  if (selector === null) return currentVersion
  if (NUMBER.test(selector)) return Number(selector)
  if (selector === 'latest') return lastVersion
  return Object.hasOwn(aliases, selector) ? aliases[selector] : null
}

/** Versions never change, so those that are called are kept. */
export type FindVersion = (key: EndpointKey, number: number) => Promise<EndpointVersion | null>

export function createVersionReader(store: Pick<EndpointStore, 'findVersion'>): FindVersion {
  const kept = new BoundedMap<string, EndpointVersion>(MAX_KEPT_VERSIONS)
  return async ({ accountId, name }, number) => {
    const id = JSON.stringify([accountId, name, number])
    const known = kept.get(id)
    if (known !== undefined) return known
    const version = await store.findVersion({ accountId, name }, number)
    // What the service offers is in memory already.
    if (version !== null && version.graph.length <= MAX_KEPT_LENGTH && version.rule === undefined) kept.set(id, version)
    return version
  }
}

const MAX_KEPT_VERSIONS = 256
const MAX_KEPT_LENGTH = 131_072

export function noEndpoint(): ServiceError {
  return new ServiceError('not_found', 'there is no endpoint with this name')
}

export function noVersion(name: string, selector: string): ServiceError {
  return new ServiceError('not_found', `the endpoint ${name} has no version ${JSON.stringify(selector.slice(0, 64))}`)
}
