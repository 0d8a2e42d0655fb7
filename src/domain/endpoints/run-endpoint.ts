/**
 * A call of an endpoint: its inputs are checked, its files taken, and the version's graph with the caller's values becomes a job like any
 * other. The job says which version it runs; moving the endpoint afterwards changes nothing about it.
 */
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { GivingRequest } from '../assets/given-files.ts'
import { deploymentOf, readCopyPool } from '../engine/copy-pool.ts'
import { ServiceError } from '../errors.ts'
import type { StoredBatch } from '../jobs/batches/batch.ts'
import type { ReadItem, SubmitBatch } from '../jobs/batches/submit-batch.ts'
import type { Job } from '../jobs/job.ts'
import { toBound } from '../jobs/limits/run-limits.ts'
import type { DryRun, TrySubmit } from '../jobs/submit/dry-run.ts'
import { toRunLabels } from '../jobs/submit/job-labels.ts'
import type { Submit, SubmitRequest } from '../jobs/submit/submit-job.ts'
import type { CheckedBytes } from '../moderation/check-links.ts'
import type { RunCheck } from '../moderation/check-run.ts'
import { checkInputs } from './check-inputs.ts'
import type { InputProblem } from './endpoint.ts'
import { type Endpoint, type EndpointVersion, nameFor, scopeOfEndpoint, toJobPrice } from './endpoint.ts'
import { fillGraph } from './fill-graph.ts'
import { type InputFile, isNewFile, type TakeFiles } from './input-files.ts'
import type { LendFiles } from './lend-files.ts'
import type { MayUseDeployment } from './manage-endpoints.ts'
import type { EndpointCaller, Reach, Resolved } from './reach.ts'
import { type FindServedRelease, findServed, lacksRelease, otherRelease } from './release.ts'
import { invalidInput, toTold, withoutPlaces } from './told-refusals.ts'

interface RunRequest
  extends Pick<
      SubmitRequest,
      | ('keyId' | 'pool' | 'extraData' | 'metadata' | 'priority' | 'webhook' | 'reuse' | 'idempotencyKey' | 'within')
      | ('notBefore' | 'expiresQueuedAfterSeconds')
    >,
    EndpointCaller {
  /** A name, perhaps with a version: `portrait@stable`. */
  readonly reference: string
  readonly inputs: JsonObject
  /** Forms have texts only. */
  readonly areTexts?: boolean
  /** The id of the link through which it is called; left out: none. */
  readonly share?: string
  /** A digest of what was asked; left out: nobody compares it. */
  readonly asked?: string
  /** Aborted when the caller leaves before the job is accepted. */
  readonly signal?: AbortSignal
}

export interface EndpointRun extends Resolved {
  readonly job: Job
  /** As used: defaults, the seed that was drawn, and files as what they became. */
  readonly inputs: JsonObject
}

interface BatchRunRequest extends Omit<RunRequest, 'inputs'> {
  readonly items: readonly JsonObject[]
  /** All of them or none. */
  readonly isWhole: boolean
  /** Of the whole request. */
  readonly digest: string
}

interface RunDeps {
  readonly endpoints: Pick<Reach, 'resolveToCall'>
  readonly submit: Submit
  readonly submitBatch: SubmitBatch
  readonly trySubmit: TrySubmit
  readonly takeFiles: TakeFiles
  /** For callers of other accounts: the files that the author fixed. */
  readonly lendFiles: LendFiles
  /** Asks whether a call may run as it is; null: nobody is asked. */
  readonly check: Pick<RunCheck, 'call'> | null
  /** Asked with every call: a deployment may have been given to somebody else. */
  readonly mayUse: MayUseDeployment
  /** Left out: no deployment is on a release. */
  readonly servedRelease?: FindServedRelease
  /** As Math.random. */
  readonly random: () => number
}

export interface RunEndpoint {
  /** Throws invalid_input with every mistake, and whatever a submit throws. */
  run(request: RunRequest): Promise<EndpointRun>
  /** What a run would meet, without making it. Files that would become assets first are not looked at. */
  tryRun(request: RunRequest): Promise<DryRun>
  /** One job for each item, recorded together. What is wrong with an item is told under its number. */
  runMany(request: BatchRunRequest): Promise<StoredBatch>
}

// How many items are made ready at a time: their files may have to be fetched.
const AT_ONCE = 8

export function createRunEndpoint(deps: RunDeps): RunEndpoint {
  const { submit, submitBatch } = deps
  const { resolve, mustRunThere, findClosed, toAllTerms } = createGate(deps)

  return {
    async run(request) {
      const resolved = await resolve(request)
      const { inputs, ...job } = await prepareChecked(deps, resolved, request, request.inputs)
      try {
        const made = await submit({ ...toAllTerms(resolved, request), ...job })
        return { ...resolved, inputs, job: made }
      } catch (error) {
        throw toTold(error, resolved, request.accountId)
      }
    },
    async tryRun(request) {
      const resolved = await deps.endpoints.resolveToCall(request, request.reference)
      mustRunThere(request.accountId, resolved.endpoint)
      const found = findClosed(resolved, request.accountId)
      const { areTexts = false, accountId } = request
      const checked = checkInputs(resolved.version.inputs, request.inputs, { areTexts, random: deps.random })
      const files = checked.files.filter(({ value }) => !isNewFile(value))
      const { taken, problems } = await deps.takeFiles(accountId, toInputFiles(files), {})
      const values = new Map([...checked.values, ...taken])
      const { inputs: _, ...job } = await lend(deps, resolved, request, toCall(resolved, request, values))
      const broken = checked.problems.length > 0 ? [] : findBroken(resolved.version, request.inputs, checked.values)
      const wrong = [...checked.problems, ...broken, ...problems]
      const complaints = wrong.length === 0 ? found : [...found, invalidInput(wrong)]
      const tried = await deps.trySubmit({ ...toTerms(deps, resolved, request), ...job }, complaints)
      // What the workflow was published with stands where a file is not there yet.
      const isWhole = files.length === checked.files.length && wrong.length === 0
      const isKnown = ({ refusal }: ServiceError) => isWhole || refusal !== 'missing_asset'
      const notThere = checked.files.flatMap(({ input, value }) => (isNewFile(value) ? input.places : []))
      return {
        ...tried,
        isOfOther: resolved.endpoint.accountId !== accountId,
        complaints: tried.complaints
          .filter(isKnown)
          .flatMap((complaint) => withoutPlaces(complaint, notThere))
          .map((complaint) => toTold(complaint, resolved, accountId) as ServiceError),
      }
    },
    async runMany({ items, isWhole, digest, ...request }) {
      const resolved = await resolve(request)
      const ready: ReadItem[] = []
      const known: GivingRequest['known'] = new Map()
      for (let from = 0; from < items.length; from += AT_ONCE) {
        const slice = items.slice(from, from + AT_ONCE)
        const made = await Promise.allSettled(
          slice.map((inputs) => prepareChecked(deps, resolved, request, inputs, known)),
        )
        for (const each of made) ready.push(() => mustBeMade(each))
      }
      return submitBatch({
        ...toAllTerms(resolved, request),
        ...{ digest, isWhole, items: ready, changes: null },
        tell: (error) => toTold(error, resolved, request.accountId),
      })
    },
  }
}

/** Which version a call reaches, and whether that takes calls where its owner runs it. */
function createGate(deps: RunDeps) {
  const { servedRelease = () => null } = deps

  async function resolve(request: Pick<RunRequest, 'accountId' | 'endpoints' | 'reference'>): Promise<Resolved> {
    const resolved = await deps.endpoints.resolveToCall(request, request.reference)
    mustRunThere(request.accountId, resolved.endpoint)
    mustTakeCalls(resolved, request.accountId)
    return resolved
  }

  function mustTakeCalls(resolved: Resolved, accountId: string): void {
    if (resolved.endpoint.state !== 'ready') throw stopped(nameFor(accountId, resolved.endpoint))
    mustHaveRelease(resolved, accountId)
  }

  /** Asked first, so that no file is taken for nothing, and of the pool that the job is recorded for. */
  function mustHaveRelease({ endpoint, version }: Resolved, accountId: string, pool?: string): void {
    const { release } = version.required
    if (release === undefined) return
    const served = findServed(
      endpoint,
      release,
      pool === undefined ? servedRelease : () => readCopyPool(pool)?.releaseVersion ?? null,
    )
    if (lacksRelease(release, served)) throw otherRelease({ endpoint, version }, { release, served, accountId })
  }

  function toAllTerms(resolved: Resolved, request: Omit<RunRequest, 'inputs'>) {
    const mustRunOn = (pool: string) => mustHaveRelease(resolved, request.accountId, pool)
    const isPinned = resolved.version.required.release?.isPinned === true
    return { ...toTerms(deps, resolved, request), ...(isPinned && { mustRunOn }) }
  }

  /** Why the endpoint takes no calls, whatever they say. */
  function findClosed(resolved: Resolved, accountId: string): ServiceError[] {
    try {
      mustTakeCalls(resolved, accountId)
      return []
    } catch (error) {
      if (error instanceof ServiceError) return [error]
      throw error
    }
  }

  /** Where its owner runs it: callers of other accounts need not have that deployment. */
  function mustRunThere(accountId: string, endpoint: Endpoint): void {
    const { deployment } = endpoint.settings
    if (deployment === null || deps.mayUse(endpoint.accountId, deployment)) return
    const name = nameFor(accountId, endpoint)
    throw new ServiceError('endpoint_stopped', `the endpoint ${name} runs on a deployment that its account may not use`)
  }

  return { resolve, mustRunThere, findClosed, toAllTerms }
}

function stopped(name: string): ServiceError {
  return new ServiceError('endpoint_stopped', `the endpoint ${name} was stopped by its owner`)
}

/** What holds for every job of the request: whose it is, where it runs, what it may cost, and what it has to fit into. */
function toTerms(deps: Pick<RunDeps, 'mayUse'>, { endpoint }: Resolved, request: Omit<RunRequest, 'inputs'>) {
  const { accountId, keyId = null, idempotencyKey, within = [] } = request
  const { settings } = endpoint
  const name = nameFor(accountId, endpoint)
  const own = toBound(scopeOfEndpoint(name), `the endpoint ${name}`, settings.limits)
  return {
    ...{ accountId, keyId, pool: toPool(deps, endpoint, request), idempotencyKey },
    within: own === null ? within : [...within, own],
    ...(settings.price !== null && { price: toJobPrice(settings.price) }),
  }
}

/**
 * Where its owner runs it, or else where the address of the call says. A deployment of the caller alone runs what that account put
 * there, to which the workflow and the files of another account must not be given: such a call goes where everybody's go.
 */
function toPool(
  { mayUse }: Pick<RunDeps, 'mayUse'>,
  { accountId: owner, settings }: Endpoint,
  { accountId, pool = null }: Pick<RunRequest, 'accountId' | 'pool'>,
): string | null {
  if (settings.deployment !== null || pool === null) return settings.deployment
  return owner === accountId || mayUse(owner, deploymentOf(pool)) ? pool : null
}

function mustBeMade(made: PromiseSettledResult<PreparedCall>): PreparedCall {
  if (made.status === 'rejected') throw made.reason
  return made.value
}

/** What a job is made of, and the inputs that were used. */
interface PreparedCall
  extends Pick<
    SubmitRequest,
    | ('workflow' | 'extraData' | 'metadata' | 'priority' | 'webhook' | 'reuse' | 'notBefore')
    | ('expiresQueuedAfterSeconds' | 'endpointInputs' | 'isChecked' | 'lent')
  > {
  readonly inputs: JsonObject
}

/** Throws invalid_input, refused_by_policy, check_unavailable. */
async function prepareChecked(
  deps: RunDeps,
  resolved: Resolved,
  request: CallTerms,
  asked: JsonObject,
  known?: GivingRequest['known'],
): Promise<PreparedCall> {
  const { call, files } = await prepare(deps, resolved, request, asked, known)
  if (deps.check === null) return call
  const { endpoint, version } = resolved
  const { accountId, keyId = null, metadata, signal } = request
  const facts = { accountId, keyId, metadata, inputs: call.inputs, files, ...(signal && { signal }) }
  // What the hook gives is checked as what a caller gives: as values of their types, whatever the call came as.
  const again = async (inputs: JsonObject) =>
    (await prepare(deps, resolved, { ...request, areTexts: false }, inputs, known)).call
  const changed = await deps.check.call(
    { ...facts, endpoint: { name: nameFor(accountId, endpoint), version: version.number } },
    again,
  )
  return changed ?? call
}

type CallTerms = Omit<RunRequest, 'inputs' | 'reference'>

interface Prepared {
  readonly call: PreparedCall
  /** The inputs that are files. */
  readonly files: ReadonlyMap<string, CheckedBytes>
}

/** Throws invalid_input. */
async function prepare(
  deps: RunDeps,
  resolved: Resolved,
  request: CallTerms,
  asked: JsonObject,
  known?: GivingRequest['known'],
): Promise<Prepared> {
  const { takeFiles, random } = deps
  const { accountId, areTexts = false, signal = null } = request
  const { values, files, problems } = checkInputs(resolved.version.inputs, asked, { areTexts, random })
  const wrong = problems.length > 0 ? problems : findBroken(resolved.version, asked, values)
  // Nothing is fetched for a call that is refused anyway.
  if (wrong.length > 0) throw invalidInput(wrong)
  const given = await takeFiles(accountId, toInputFiles(files), {
    ...(signal && { signal }),
    ...(known && { known }),
  })
  if (given.problems.length > 0) throw invalidInput(given.problems)
  const call = toCall(resolved, request, new Map([...values, ...given.taken]))
  return { call: await lend(deps, resolved, request, call), files: given.bytes }
}

/** What its author fixed is his own, and a caller of another account need not have it. */
async function lend(
  deps: Pick<RunDeps, 'lendFiles' | 'mayUse'>,
  { endpoint, version }: Resolved,
  request: Pick<CallTerms, 'accountId' | 'pool'>,
  call: PreparedCall,
): Promise<PreparedCall> {
  if (endpoint.accountId === request.accountId) return call
  const pool = toPool(deps, endpoint, request)
  return { ...call, ...(await deps.lendFiles({ endpoint, version, pool }, call.workflow as JsonObject)) }
}

/** Asked of what the caller gave, as it was understood: texts of a table are numbers by now. */
function findBroken(
  { rule }: EndpointVersion,
  asked: JsonObject,
  values: ReadonlyMap<string, JsonValue>,
): readonly InputProblem[] {
  if (rule === undefined) return []
  const given = Object.entries(asked).filter(([, value]) => value !== null)
  return rule(Object.fromEntries(given.map(([name, value]) => [name, values.get(name) ?? value])))
}

function toInputFiles(files: ReturnType<typeof checkInputs>['files']): InputFile[] {
  return files.map(({ input, value }) => ({ ...input, value }))
}

function toCall(
  { endpoint, version }: Resolved,
  { accountId, extraData, metadata, priority, webhook, reuse, share, asked, ...times }: CallTerms,
  all: ReadonlyMap<string, JsonValue>,
): PreparedCall {
  const inputs = Object.fromEntries(
    version.inputs.flatMap(({ name }) => (all.has(name) ? [[name, all.get(name)!]] : [])),
  )
  return {
    ...{ inputs, extraData, priority, webhook: webhook ?? null, reuse: reuse ?? null, isChecked: true },
    ...{ notBefore: times.notBefore ?? null, expiresQueuedAfterSeconds: times.expiresQueuedAfterSeconds ?? null },
    workflow: fillGraph(parseLosslessJson(version.graph) as JsonObject, version.inputs, inputs),
    metadata: {
      ...metadata,
      ...toRunLabels({ name: nameFor(accountId, endpoint), version: version.number, share, asked }),
    },
    endpointInputs: toKeptInputs(inputs),
  }
}

// Kept with every run.
const MAX_KEPT_INPUTS = 262_144

/** null: they are too long to be kept. */
function toKeptInputs(inputs: JsonObject): string | null {
  const text = stringifyLosslessJson(inputs)
  return text.length <= MAX_KEPT_INPUTS ? text : null
}
