/**
 * The endpoints of an account: published from files, moved between versions, removed. A publish that would break the calls of those who
 * use the current version is refused unless its author says that this is meant. What a call names is found here, too.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { isPlainLine, isPlainText } from '../../../lib/text/plain-text.ts'
import { isAccountId } from '../accounts/account.ts'
import { invalidField, ServiceError } from '../errors.ts'
import { changeLimits, type LimitsChange } from '../jobs/limits/run-limits.ts'
import type { ConvertWarning } from '../workflows/convert/prompt/write-prompt.ts'
import type { Missing } from '../workflows/needs.ts'
import {
  DEFAULT_SETTINGS,
  type Endpoint,
  type EndpointInput,
  type EndpointSettings,
  type EndpointVersion,
  EVERYONE,
  type VersionContent,
  type VersionRelease,
} from './endpoint.ts'
import type { EndpointChange, EndpointKey, EndpointStore } from './endpoint-store.ts'
import { isName, isReservedName, type ServiceEndpoints, withService } from './offered.ts'
import { createReach, createVersionReader, type FindVersion, noEndpoint, noVersion, type Reach } from './reach.ts'
import type { FindServedRelease } from './release.ts'
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
  /** Why no call of it could ever run; null: nothing is known that speaks against it. */
  readonly fault: ServiceError | null
}

export interface MissingOfVersion extends Missing {
  /** The only release on which it runs, and the one that is served in its place; left out: it need not be another one. */
  readonly release?: VersionRelease & { readonly served: number | null }
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
  /** Calls are to run on the release that its deployment serves now, or not at all; left out: on whichever it serves. */
  readonly isReleasePinned?: boolean
  /** Left out: as they are. */
  readonly title?: string
  readonly description?: string
  readonly settings?: SettingsChange
}

/** What is left out stays. Prices are the operators' business. */
export type SettingsChange = Partial<Omit<EndpointSettings, 'limits' | 'price'>> & { readonly limits?: LimitsChange }

export interface PublishAnswer {
  readonly endpoint: Endpoint
  readonly version: EndpointVersion
  readonly isNew: boolean
  readonly warnings: readonly ConvertWarning[]
  readonly missing: Missing
  /** To the version that was current before. */
  readonly differences: readonly VersionDifference[]
}

/** What is left out stays. */
interface WantedChange extends Omit<EndpointChange, 'aliases' | 'settings'> {
  readonly settings?: SettingsChange
}

function changeSettings(settings: EndpointSettings, { limits, ...wanted }: SettingsChange = {}): EndpointSettings {
  return { ...settings, ...wanted, limits: changeLimits(settings.limits, limits ?? {}) }
}

export interface Endpoints extends Reach {
  /** Stores nothing. */
  draft(request: DraftRequest): Promise<Draft>
  /** Throws breaking_change. */
  publish(request: PublishRequest): Promise<PublishAnswer>
  /** `revision`: what the caller has seen; null: whatever it is now. Throws revision_mismatch. */
  change(key: EndpointKey, change: WantedChange, revision: number | null): Promise<Endpoint>
  /** Sets, or with null removes, the alias. */
  moveAlias(key: EndpointKey, alias: string, version: number | null): Promise<Endpoint>
  remove(key: EndpointKey): Promise<void>
}

interface EndpointsDeps {
  readonly store: EndpointStore
  /** What every account has; left out: nothing. */
  readonly service?: ServiceEndpoints
  readonly clock: Clock
  readonly draft: (request: DraftRequest) => Promise<Draft>
  /** Whether the account may run jobs there; left out: there are no deployments that could be named. */
  readonly mayUse?: MayUseDeployment
  /** Left out: no deployment is on a release. */
  readonly servedRelease?: FindServedRelease
  /** Whether the account may run anything; left out: it always may. */
  readonly isActive?: (accountId: string) => boolean
  readonly limit?: number
}

const NO_DEPLOYMENTS = { mayUse: () => false, servedRelease: () => null }

export type MayUseDeployment = (accountId: string, deployment: string) => boolean

const MAX_ENDPOINTS = 10_000
const MAX_ALIASES = 50
const MAX_NOTE = 2000
const ALIAS = /^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/
const TRIES = 5

export function createEndpoints(deps: EndpointsDeps): Endpoints {
  const { store, clock, draft } = deps
  const found = deps.service === undefined ? store : withService(store, deps.service)
  const versions = createVersionReader(found)
  const { findOwn: findAny, ...reach } = createReach(found, versions, {
    find: (key) => store.find(key),
    listShared: (accountId, page) => store.listShared(accountId, page),
    findSharedByHash: (accountId, hash) => store.findSharedByHash(accountId, hash),
    versions: createVersionReader(store),
    isActive: deps.isActive ?? (() => true),
  })

  async function findOwn(key: EndpointKey): Promise<Endpoint> {
    const endpoint = await findAny(key)
    if (endpoint.isOfService === true) throw notOwn(key.name)
    return endpoint
  }

  /** `decide` is asked again where the endpoint has changed meanwhile. */
  async function change(
    key: EndpointKey,
    decide: (endpoint: Endpoint) => EndpointChange,
    revision: number | null,
  ): Promise<Endpoint> {
    for (let tried = 1; ; tried++) {
      const endpoint = await findOwn(key)
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
    const { settings } = texts
    if (settings?.deployment !== endpoint.settings.deployment) mustBeUsable(deps, endpoint.accountId, settings)
    for (const number of [...(currentVersion === undefined ? [] : [currentVersion]), ...Object.values(aliases ?? {})])
      if ((await versions(endpoint, number)) === null) throw noVersion(endpoint.name, String(number))
  }

  return {
    draft,
    ...reach,
    change: (key, { settings, ...wanted }, revision) =>
      change(
        key,
        (endpoint) => ({ ...wanted, ...(settings && { settings: changeSettings(endpoint.settings, settings) }) }),
        revision,
      ),
    publish: createPublish({ ...NO_DEPLOYMENTS, ...deps, limit: deps.limit ?? MAX_ENDPOINTS }, versions),
    async moveAlias(key, alias, version) {
      if (!ALIAS.test(alias) || alias === 'latest')
        throw invalidField(
          'alias',
          'must be 1 to 32 small letters, digits or dashes that begin with a letter, and not latest',
        )
      return change(key, ({ aliases }) => ({ aliases: withAlias(aliases, alias, version) }), null)
    },
    async remove(key) {
      await findOwn(key)
      if (!(await store.remove(key, clock.now()))) throw noEndpoint()
    },
  }
}

/** Judged by the version that is current; where another publish came between, judged anew by what that left. */
function createPublish(
  { store, clock, draft, limit, mayUse, servedRelease }: Required<Omit<EndpointsDeps, 'service' | 'isActive'>>,
  versions: FindVersion,
): Endpoints['publish'] {
  return async (request) => {
    const { accountId, name } = request
    mustBeName(name)
    checkTexts(request)
    mustBeUsable({ mayUse }, accountId, request.settings)
    const known = await store.find({ accountId, name })
    const { deployment = known?.settings.deployment ?? null } = request.settings ?? {}
    const made = await draft({ ...request, deployment })
    if (made.fault !== null) throw made.fault
    for (let tried = 1; tried <= TRIES; tried++) {
      const before = await store.find({ accountId, name })
      const current = before === null ? null : await versions(before, before.currentVersion)
      const settings = changeSettings(before?.settings ?? DEFAULT_SETTINGS, request.settings)
      const release = findRelease(request, settings, servedRelease)
      const content = { ...made, required: { ...made.required, ...(release !== null && { release }) } }
      const differences = current === null ? [] : compareVersions(current, content)
      mustNotBreak(name, differences, request.isBreakingMeant)
      const published = await store.publish(toPublish(request, content, { before, settings, at: clock.now(), limit }))
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

/** What its deployment serves at this moment. Throws invalid_field where there is nothing to pin. */
function findRelease(
  { accountId, isReleasePinned: isPinned = false }: PublishRequest,
  { deployment }: EndpointSettings,
  servedRelease: FindServedRelease,
): VersionRelease | null {
  const version = deployment === null ? null : servedRelease(accountId, deployment)
  if (deployment !== null && version !== null) return { deployment, version, isPinned }
  if (isPinned) throw invalidField('pin_release', 'needs a deployment that is on a release')
  return null
}

interface PublishFacts {
  readonly before: Endpoint | null
  readonly settings: EndpointSettings
  readonly at: Date
  readonly limit: number
}

function toPublish(request: PublishRequest, made: Draft, { before, settings, at, limit }: PublishFacts) {
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
      settings,
    },
    version: { ...content, hash: hashVersion(content), note, createdAt: at, createdBy: keyId },
  }
}

/** One of another account looks as if it did not exist. */
function mustBeUsable(
  { mayUse = () => false }: Pick<EndpointsDeps, 'mayUse'>,
  accountId: string,
  { deployment = null }: Pick<SettingsChange, 'deployment'> = {},
): void {
  if (deployment === null || mayUse(accountId, deployment)) return
  throw invalidField('deployment', 'is no deployment that this account may use')
}

function mustBeName(name: string): void {
  if (!isName(name))
    throw invalidField('name', 'must be 1 to 63 small letters, digits or dashes, with a letter or digit at both ends')
  if (isReservedName(name))
    throw invalidField('name', `must not be ${name}, which stands for something else in addresses`)
}

interface Texts {
  readonly title?: string
  readonly description?: string
  readonly note?: string
  readonly settings?: Pick<SettingsChange, 'models' | 'callers'>
}

const MAX_TITLE = 200
const MAX_DESCRIPTION = 20_000
const MAX_MODELS = 20
const MAX_CALLERS = 1000
const NOT_PLAIN = 'must have no control characters, and none that turn its order around'

function checkTexts({ title = '', description = '', note = '', settings }: Texts): void {
  if (title.length > MAX_TITLE) throw invalidField('title', `must have at most ${MAX_TITLE} characters`)
  if (description.length > MAX_DESCRIPTION)
    throw invalidField('description', `must have at most ${MAX_DESCRIPTION} characters`)
  if (note.length > MAX_NOTE) throw invalidField('note', `must have at most ${MAX_NOTE} characters`)
  if (!isPlainLine(title)) throw invalidField('title', NOT_PLAIN)
  for (const [field, text] of [['description', description] as const, ['note', note] as const])
    if (!isPlainText(text)) throw invalidField(field, NOT_PLAIN)
  if ((settings?.models?.length ?? 0) > MAX_MODELS) throw invalidField('models', `must be at most ${MAX_MODELS} names`)
  // Whether there is such an account is nobody else's to know.
  const callers = settings?.callers ?? []
  if (callers.length > MAX_CALLERS) throw invalidField('callers', `must be at most ${MAX_CALLERS} accounts`)
  const wrong = callers.find((each) => each !== EVERYONE && !isAccountId(each))
  if (wrong !== undefined)
    throw invalidField(
      'callers',
      `must be ids of accounts, or ${EVERYONE} for every account, and ${JSON.stringify(wrong.slice(0, 64))} is neither`,
    )
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

function notOwn(name: string): ServiceError {
  return new ServiceError(
    'forbidden',
    `the endpoint ${name} belongs to the service and cannot be changed; publish one of this name to have your own in its place`,
  )
}

function revisionMismatch(name: string): ServiceError {
  return new ServiceError('revision_mismatch', `the endpoint ${name} was changed meanwhile; read it and decide again`)
}

function tooMany(limit: number): ServiceError {
  return invalidField(
    'name',
    `would be one more than the ${limit} endpoints that an account may have, or than ten times as many names: remove some, or take the name of one that was removed`,
  )
}
