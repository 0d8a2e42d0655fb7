/**
 * Calls of the router that run endpoints: each is one job. The job has a key that is made of the call's id, so however often a call is submitted
 * there is one job of it, and the handle of the call is the job's id, so whichever process goes on with the call finds the job
 * and makes its answer of what the job made.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { isJsonObject, type JsonObject } from '../../../../lib/json/lossless-json.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { BlobStore } from '../../assets/blob-store.ts'
import { isStoreAway, ServiceError } from '../../errors.ts'
import type { IdempotencyStore } from '../../idempotency/idempotency-key.ts'
import type { Job, Output } from '../../jobs/job.ts'
import type { JobReader } from '../../jobs/read/job-reader.ts'
import { readStoredJson } from '../../jobs/run/run-steps.ts'
import { readRunLabels } from '../../jobs/submit/job-labels.ts'
import { isRecord, type Model } from '../../models/catalog/model.ts'
import type { PollOutcome, Provider, ProviderCall, ProviderRefusal, SubmitOutcome } from '../../models/provider.ts'
import type { RouterRefusal } from '../../models/router-error.ts'
import type { EndpointOutput, InputProblem } from '../endpoint.ts'
import type { Reach } from '../reach.ts'
import type { RunEndpoint } from '../run-endpoint.ts'
import { toResults } from '../run-results.ts'
import type { WaitForRun } from '../wait-for-run.ts'
import { toFailures } from './input-failures.ts'
import { type AnswerFile, refused, toDocument } from './model-answer.ts'

interface EndpointCallsDeps {
  readonly runs: Pick<RunEndpoint, 'run'>
  readonly endpoints: Pick<Reach, 'resolve'>
  readonly keys: Pick<IdempotencyStore, 'findKey'>
  readonly jobs: Pick<JobReader, 'find'>
  readonly cancel: (accountId: string, jobId: string) => Promise<unknown>
  readonly wait: WaitForRun['wait']
  readonly blobs: Pick<BlobStore, 'open'>
  readonly turns: Turns
  readonly clock: Clock
}

type EndpointCalls = Pick<Provider, 'submit' | 'poll'> & Required<Pick<Provider, 'cancel'>>

// A cancel is looked for between two questions.
const ASK_FOR_MS = 1000

export function createEndpointCalls(deps: EndpointCallsDeps): EndpointCalls {
  return {
    async submit(call, { signal }) {
      try {
        const jobId = (await findJob(deps, call)) ?? (await makeJob(deps, call, signal))
        return { outcome: 'accepted', handle: { job: jobId }, pollAfterMs: 0 }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        return { outcome: 'refused', refusal: toRefusal(error) }
      }
    },
    async poll({ accountId, handle }, { signal }) {
      try {
        const job = await deps.jobs.find(accountId, jobOf(handle))
        const waited = await deps.wait(job, ASK_FOR_MS, signal)
        return waited.hasEnded ? await toOutcome(deps, waited.job) : { outcome: 'pending', pollAfterMs: 0 }
      } catch (error) {
        if (error instanceof ServiceError && error.refusal === 'not_found')
          return refused('failed', 'the job of this call is not kept any more', 'ended')
        if (isStoreAway(error)) return { outcome: 'unreachable', message: 'the store is away', pollAfterMs: ASK_FOR_MS }
        throw error
      }
    },
    async cancel({ accountId, handle }) {
      await deps.cancel(accountId, jobOf(handle))
    },
  }
}

function jobOf(handle: unknown): string {
  return isRecord(handle) && typeof handle['job'] === 'string' ? handle['job'] : ''
}

const keyOf = ({ submitKey }: ProviderCall) => `call of a model: ${submitKey}`

/** The job of an earlier submit of this call. Asked for first: files that the call names need not be there any more. */
async function findJob({ keys, clock }: EndpointCallsDeps, call: ProviderCall): Promise<string | null> {
  return (await keys.findKey(call.accountId, keyOf(call), clock.now()))?.jobId ?? null
}

async function makeJob({ runs, turns }: EndpointCallsDeps, call: ProviderCall, signal: AbortSignal): Promise<string> {
  const { accountId, keyId = null, model, body } = call
  try {
    const { job } = await runs.run({
      // Whether the key reaches it was asked when the model was opened.
      ...{ accountId, keyId, endpoints: null, pool: null, idempotencyKey: keyOf(call), signal },
      ...{ reference: referenceOf(model), inputs: await readInputs(body, turns) },
      ...{ extraData: null, metadata: {}, priority: 0 },
    })
    return job.id
  } catch (error) {
    // A process that was given up has submitted it after all.
    const made = error instanceof ServiceError && error.refusal === 'idempotency_key_reuse' ? error.details : null
    if (typeof made?.['jobId'] === 'string') return made['jobId']
    throw error
  }
}

/** With all digits of its numbers. The router has read the body once, and takes a mark before it. */
async function readInputs(body: Buffer, turns: Turns): Promise<JsonObject> {
  return (await readStoredJson(body.toString().replace(/^\uFEFF/, ''), turns)) as JsonObject
}

function referenceOf({ id, adapter }: Model): string {
  const { endpoint } = adapter
  if (typeof endpoint === 'string') return endpoint
  throw new Error(`${id} is no endpoint`)
}

async function toOutcome(deps: EndpointCallsDeps, job: Job): Promise<Exclude<PollOutcome, { outcome: 'pending' }>> {
  if (job.status === 'succeeded') return toAnswer(deps, job)
  const why = job.status === 'canceled' ? 'it was cancelled' : (job.error?.message ?? 'it failed')
  return refused('failed', `the job ${job.id} of this call did not succeed: ${why}`, 'ended')
}

async function toAnswer(
  { endpoints, blobs }: EndpointCallsDeps,
  job: Job,
): Promise<Exclude<SubmitOutcome, { outcome: 'accepted' }>> {
  const called = readRunLabels(job.metadata)
  const named = called === null ? [] : await outputsOf(endpoints, job.accountId, `${called.name}@${called.version}`)
  const results = named.length > 0 ? toResults(job, named) : [{ name: 'outputs', made: job.outputs }]
  const files: AnswerFile[] = []
  const texts: string[] = []
  for (const { name: output, made } of results) {
    for (const each of made) {
      if (each.type === 'text' && each.sizeBytes <= MAX_TEXT_BYTES) texts.push(await readText(blobs, each))
      else files.push(toFile(blobs, each, output))
    }
  }
  return toDocument(files, { texts, job_id: job.id, version: called?.version ?? 0 })
}

// A longer text is a file like any other.
const MAX_TEXT_BYTES = 1_048_576

/** None where the version was removed with its endpoint: then everything counts that the job lists. */
async function outputsOf(
  endpoints: Pick<Reach, 'resolve'>,
  accountId: string,
  reference: string,
): Promise<readonly EndpointOutput[]> {
  try {
    return (await endpoints.resolve({ accountId, endpoints: null }, reference)).version.outputs
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return []
    throw error
  }
}

function toFile(
  blobs: Pick<BlobStore, 'open'>,
  { name, contentType, sizeBytes, hash }: Output,
  output: string,
): AnswerFile {
  return { name, contentType, sizeBytes, output, open: async () => await blobs.open(hash) }
}

async function readText(blobs: Pick<BlobStore, 'open'>, { hash }: Output): Promise<string> {
  return Buffer.concat(await Array.fromAsync((await blobs.open(hash)) as AsyncIterable<Uint8Array>)).toString('utf8')
}

const REFUSALS: Partial<Record<ServiceError['refusal'], RouterRefusal>> = {
  insufficient_credits: 'no_credits',
  spend_limit: 'no_credits',
  forbidden: 'forbidden',
  not_found: 'unknown_model',
  subscription_inactive: 'not_enabled',
  endpoint_stopped: 'not_enabled',
  deployment_stopped: 'not_enabled',
  // The inputs are fine, so it is the version that no engine here runs.
  invalid_workflow: 'not_enabled',
  missing_asset: 'not_enabled',
}
/** They pass: whoever waits in a queue goes on waiting. */
const PASSING: ReadonlySet<ServiceError['refusal']> = new Set([
  ...(['queue_full', 'rate_limited', 'storage_full', 'store_unavailable', 'overloaded'] as const),
  ...(['shutting_down', 'deployment_not_ready', 'run_limit', 'check_unavailable'] as const),
])
const RETRY_SECONDS = 5

/** Nothing was recorded: a submit is refused as a whole. */
function toRefusal(error: ServiceError): ProviderRefusal {
  const { refusal, message, details, retryAfterSeconds } = error
  const common = { message, upstreamStatus: null, generation: 'none' } as const
  const problems = details?.['inputs']
  if (refusal === 'invalid_input' && Array.isArray(problems))
    return {
      ...common,
      reason: 'invalid',
      failures: toFailures(problems.filter(isJsonObject) as unknown as InputProblem[]),
    }
  // The operator's hook does not allow it.
  if (refusal === 'refused_by_policy') return { ...common, reason: 'policy', costMicros: null }
  if (PASSING.has(refusal))
    return { ...common, reason: 'unavailable', retryAfterSeconds: retryAfterSeconds ?? RETRY_SECONDS }
  return { ...common, reason: 'refused', refusal: REFUSALS[refusal] ?? 'malformed' }
}
