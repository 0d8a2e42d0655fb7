/**
 * A call of an endpoint: its inputs are checked, its files taken, and the version's graph with the caller's values becomes a job like any
 * other. The job says which version it runs; moving the endpoint afterwards changes nothing about it.
 */
import {
  isJsonObject,
  type JsonObject,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { GivingRequest } from '../assets/given-files.ts'
import { ServiceError } from '../errors.ts'
import type { StoredBatch } from '../jobs/batches/batch.ts'
import type { ReadItem, SubmitBatch } from '../jobs/batches/submit-batch.ts'
import type { Job } from '../jobs/job.ts'
import { toRunLabels } from '../jobs/submit/job-origin.ts'
import type { Submit, SubmitRequest } from '../jobs/submit/submit-job.ts'
import { checkInputs, type InputProblem } from './check-inputs.ts'
import type { EndpointVersion } from './endpoint.ts'
import { fillGraph } from './fill-graph.ts'
import type { TakeFiles } from './input-files.ts'
import type { Endpoints, Resolved } from './manage-endpoints.ts'

interface RunRequest
  extends Pick<
    SubmitRequest,
    'accountId' | 'keyId' | 'pool' | 'extraData' | 'metadata' | 'priority' | 'webhook' | 'reuse' | 'idempotencyKey'
  > {
  /** A name, perhaps with a version: `portrait@stable`. */
  readonly reference: string
  readonly inputs: JsonObject
  /** Forms have texts only. */
  readonly areTexts?: boolean
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
  readonly endpoints: Pick<Endpoints, 'resolve'>
  readonly submit: Submit
  readonly submitBatch: SubmitBatch
  readonly takeFiles: TakeFiles
  /** As Math.random. */
  readonly random: () => number
}

export interface RunEndpoint {
  /** Throws invalid_input with every mistake, and whatever a submit throws. */
  run(request: RunRequest): Promise<EndpointRun>
  /** One job for each item, recorded together. What is wrong with an item is told under its number. */
  runMany(request: BatchRunRequest): Promise<StoredBatch>
}

// How many items are made ready at a time: their files may have to be fetched.
const AT_ONCE = 8

export function createRunEndpoint(deps: RunDeps): RunEndpoint {
  const { submit, submitBatch } = deps

  async function resolve({ accountId, reference }: Pick<RunRequest, 'accountId' | 'reference'>): Promise<Resolved> {
    const resolved = await deps.endpoints.resolve(accountId, reference)
    if (resolved.endpoint.state === 'ready') return resolved
    throw new ServiceError('endpoint_stopped', `the endpoint ${resolved.endpoint.name} was stopped by its owner`)
  }

  return {
    async run(request) {
      const resolved = await resolve(request)
      const { accountId, keyId = null, pool = null, idempotencyKey } = request
      const { inputs, ...job } = await prepare(deps, resolved, request, request.inputs)
      try {
        const made = await submit({
          accountId,
          keyId,
          pool: resolved.endpoint.settings.deployment ?? pool,
          idempotencyKey,
          ...job,
        })
        return { ...resolved, inputs, job: made }
      } catch (error) {
        throw toInputRefusal(error, resolved.version)
      }
    },
    async runMany({ items, isWhole, digest, ...request }) {
      const resolved = await resolve(request)
      const { accountId, keyId = null, pool = null, idempotencyKey } = request
      const ready: ReadItem[] = []
      const known: GivingRequest['known'] = new Map()
      for (let from = 0; from < items.length; from += AT_ONCE) {
        const slice = items.slice(from, from + AT_ONCE)
        const made = await Promise.allSettled(slice.map((inputs) => prepare(deps, resolved, request, inputs, known)))
        for (const each of made) ready.push(() => mustBeMade(each))
      }
      return submitBatch({
        ...{ accountId, keyId, pool: resolved.endpoint.settings.deployment ?? pool, idempotencyKey },
        ...{ digest, isWhole, items: ready, changes: null },
      })
    },
  }
}

function mustBeMade(made: PromiseSettledResult<PreparedCall>): PreparedCall {
  if (made.status === 'rejected') throw made.reason
  return made.value
}

/** What a job is made of, and the inputs that were used. */
interface PreparedCall
  extends Pick<
    SubmitRequest,
    'workflow' | 'extraData' | 'metadata' | 'priority' | 'webhook' | 'reuse' | 'endpointInputs'
  > {
  readonly inputs: JsonObject
}

/** Throws invalid_input. */
async function prepare(
  { takeFiles, random }: RunDeps,
  { endpoint, version }: Resolved,
  request: Omit<RunRequest, 'inputs' | 'reference'>,
  asked: JsonObject,
  known?: GivingRequest['known'],
): Promise<PreparedCall> {
  const { accountId, areTexts = false, signal = null, extraData, metadata, priority, webhook, reuse } = request
  const { values, files, problems } = checkInputs(version.inputs, asked, { areTexts, random })
  // Nothing is fetched for a call that is refused anyway.
  if (problems.length > 0) throw invalidInput(problems)
  const given = files.map(({ input, value }) => ({ ...input, value }))
  const { taken, problems: missing } = await takeFiles(accountId, given, {
    ...(signal && { signal }),
    ...(known && { known }),
  })
  if (missing.length > 0) throw invalidInput(missing)
  const all = new Map([...values, ...taken])
  const inputs = Object.fromEntries(
    version.inputs.flatMap(({ name }) => (all.has(name) ? [[name, all.get(name)!]] : [])),
  )
  return {
    ...{ inputs, extraData, priority, webhook: webhook ?? null, reuse: reuse ?? null },
    workflow: fillGraph(parseLosslessJson(version.graph) as JsonObject, version.inputs, inputs),
    metadata: { ...metadata, ...toRunLabels({ name: endpoint.name, version: version.number }) },
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

function invalidInput(problems: readonly InputProblem[]): ServiceError {
  const [first] = problems
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  return new ServiceError('invalid_input', `${first?.message}${more}`, { details: { inputs: problems } })
}

/** What an engine has against a value of the caller is told under the name of its input. */
function toInputRefusal(error: unknown, { inputs }: EndpointVersion): unknown {
  if (!(error instanceof ServiceError) || error.refusal !== 'invalid_workflow') return error
  const nodes = error.details?.['node_errors']
  if (!isJsonObject(nodes)) return error
  const problems: InputProblem[] = []
  for (const { name, places } of inputs) {
    for (const { nodeId, input } of places) {
      const found = errorsOf(nodes, nodeId).find((each) => each.field === input)
      if (found === undefined) continue
      problems.push({ name, reason: 'not_available', message: `${name}: ${found.message}` })
      break
    }
  }
  return problems.length === 0 ? error : invalidInput(problems)
}

function errorsOf(nodes: JsonObject, nodeId: string): readonly { readonly field: string; readonly message: string }[] {
  const errors = Object.hasOwn(nodes, nodeId) ? nodes[nodeId] : null
  return (Array.isArray(errors) ? errors : []) as unknown as { readonly field: string; readonly message: string }[]
}
