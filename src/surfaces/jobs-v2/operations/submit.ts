/** Accepts a workflow, or says what would happen to it. 201 means that the job is durably recorded and queued. */
import type { FastifyInstance } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { PoolPrice } from '../../../domain/credits/prices.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { ReuseLook } from '../../../domain/jobs/reuse/find-result.ts'
import type { ReuseMode } from '../../../domain/jobs/reuse/result-key.ts'
import type { DryRun, JudgedGraph, TrySubmit } from '../../../domain/jobs/submit/dry-run.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-labels.ts'
import type { Submit } from '../../../domain/jobs/submit/submit-job.ts'
import type { ForeseeWait } from '../../../domain/jobs/waits/foresee-wait.ts'
import type { HookWish } from '../../../domain/webhooks/job-hooks.ts'
import { USUAL_EVENTS } from '../../../domain/webhooks/webhook.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/routes.ts'
import { countPlaces, type EngineView, toEngineView } from '../../kit/jobs/job-view.ts'
import { readNotBefore } from '../../kit/jobs/queue-changes.ts'
import { sendJson, untilGone } from '../../kit/request.ts'
import type { EngineAvailability } from '../../kit/surface-parts.ts'
import { toComplaint } from '../jobs-errors.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { toMissingView } from '../views/endpoint-view.ts'
import { API_PATH, type JobBytes } from '../views/job-view.ts'
import { mustBeSecret, readSecret } from './webhooks.ts'

interface PostJobsDeps {
  readonly contextOf: ContextOf
  readonly submit: Submit
  readonly check: ContractCheck
  readonly jobBytes: JobBytes
  readonly maxBodyBytes: number
}

export function postJobs(app: FastifyInstance, deps: PostJobsDeps): void {
  const { contextOf, submit, check, jobBytes, maxBodyBytes } = deps
  app.post(`${API_PATH}/jobs`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonObject(request, { maxBytes: maxBodyBytes })
    const fields = readSubmitBody(body, check)
    const { accountId, keyId, pool } = context
    const giving = { signal: untilGone(request, reply) }
    const job = await submit({ accountId, keyId, pool, ...fields, idempotencyKey, giving })
    return sendJson(reply, 201, jobBytes(job, context))
  })
}

/**
 * The fields of a submit, in the order of the contract. Whether the graph is valid is the domain's business; here the body is only
 * taken apart. Messages name fields and never values, because `extra_data` holds credentials.
 */
interface SubmitBody {
  readonly workflow: JsonValue | undefined
  readonly extraData: Readonly<Record<string, unknown>> | null
  readonly metadata: Readonly<Record<string, string>>
  readonly priority: number
  readonly webhook: HookWish | null
  /** null: as the account says. */
  readonly reuse: ReuseMode | null
  readonly notBefore: Date | null
  readonly expiresQueuedAfterSeconds: number | null
}

/** Named in the contract for later; a caller that relies on them must not believe that they work. */
const RESERVED_FIELDS = ['webhook_url', 'inputs']

/** `onRefusal`: called for each invalid field, which is then treated as absent; left out: the first one is thrown. */
export function readSubmitBody(
  body: JsonObject,
  check: ContractCheck,
  onRefusal: (refusal: ServiceError) => void = (refusal) => {
    throw refusal
  },
): SubmitBody {
  function read<Value>(from: () => Value, otherwise: Value): Value {
    try {
      return from()
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      onRefusal(error)
      return otherwise
    }
  }
  const extraData = read(() => readExtraData(body['extra_data'], check), null)
  const metadata = read(() => readMetadata(body['metadata']), {})
  const priority = read(() => readPriority(body['priority'], check), 0)
  const webhook = read(() => readJobWebhook(body['webhook'], check), null)
  const reuse = read(() => readReuse(body['reuse'], check), null)
  const notBefore = read(() => readNotBefore(body['not_before']), null)
  const expiresQueuedAfterSeconds = read(() => readSeconds(body['expires_queued_after'], check), null)
  read(() => refuseReserved(body), undefined)
  const times = { notBefore, expiresQueuedAfterSeconds }
  return { workflow: body['workflow'], extraData, metadata, priority, webhook, reuse, ...times }
}

function readExtraData(value: JsonValue | undefined, check: ContractCheck): SubmitBody['extraData'] {
  if (value === undefined) return null
  const problem = isJsonObject(value) ? check('ExtraData', value, 'extra_data') : 'extra_data must be an object'
  const pngInfo = isJsonObject(value) ? value['extra_pnginfo'] : undefined
  const embedded = isJsonObject(pngInfo) ? pngInfo['workflow'] : undefined
  // A number that is kept as its text is an object to the schema, though not to JSON.
  const isOdd = (part: JsonValue | undefined) => part !== undefined && !isJsonObject(part)
  const odd = isOdd(pngInfo) || isOdd(embedded) ? 'extra_data.extra_pnginfo must hold an object under workflow' : null
  if (problem !== null || odd !== null) throw new ServiceError('invalid_request', (problem ?? odd) as string)
  return Object.keys(value as JsonObject).length === 0 ? null : (value as JsonObject)
}

function readPriority(value: JsonValue | undefined, check: ContractCheck): number {
  if (value === undefined) return 0
  const problem = check('Priority', value, 'priority')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'priority' } })
  return value as number
}

function readReuse(value: JsonValue | undefined, check: ContractCheck): ReuseMode | null {
  if (value === undefined) return null
  if (check('ReuseMode', value, 'reuse') !== null) throw invalidField('reuse', 'must be exact or none')
  return value as ReuseMode
}

function readSeconds(value: JsonValue | undefined, check: ContractCheck): number | null {
  if (value === undefined || value === null) return null
  if (check('ExpiresQueuedAfter', value, '') === null) return value as number
  throw invalidField('expires_queued_after', 'must be a whole number of seconds from 1 to 31536000')
}

function refuseReserved(body: JsonObject): void {
  for (const field of RESERVED_FIELDS) {
    if (body[field] === undefined || body[field] === null) continue
    throw invalidField(field, 'is reserved and not supported; leave it out')
  }
}

/** Answers what a submit would meet, and stores nothing. Only a request that is wrong as such is refused. */
interface ValidateJobDeps {
  readonly contextOf: ContextOf
  readonly trySubmit: TrySubmit
  readonly forecast: Forecast
  readonly check: ContractCheck
  readonly maxBodyBytes: number
}

export function validateJob(app: FastifyInstance, deps: ValidateJobDeps): void {
  const { contextOf, trySubmit, check, maxBodyBytes } = deps
  const toView = createDryRunView(deps.forecast)
  app.post(`${API_PATH}/jobs/validate`, needs('jobs:write'), async (request, reply) => {
    const { accountId, keyId, pool } = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonObject(request, { maxBytes: maxBodyBytes })
    const found: ServiceError[] = []
    const fields = readSubmitBody(body, check, (refusal) => found.push(refusal))
    const tried = await trySubmit({ accountId, keyId, pool, ...fields, idempotencyKey }, found)
    return sendJson(reply, 200, await toView(tried, { accountId, priority: fields.priority }))
  })
}

// What a submit would meet, as its dry run answers it.

/** What is known of the engines and the queue. */
export interface Forecast {
  /** Those that may run jobs of a pool. */
  readonly engines: (pool: string) => readonly ListedEngine[]
  readonly availability: () => EngineAvailability
  /** Whether engines are named that cannot run the job: to those who own them they say what to add. */
  readonly showsUnable: boolean
  readonly foreseeWait: ForeseeWait
}

interface Submitter {
  readonly accountId: string
  readonly priority: number
}

export function createDryRunView({ engines, availability, showsUnable, foreseeWait }: Forecast) {
  return async (tried: DryRun, { accountId, priority }: Submitter) => {
    const { complaints, graph, price, pool, maxRunning, reuse, isOfOther = false } = tried
    const known = availability()
    const views = graph === null ? [] : engines(pool).map((engine) => judgeEngine(engine, graph, known))
    const wait = await foreseeWait({ accountId, pool, priority, maxSlots: countPlaces(views, maxRunning) })
    // Of another account's workflow the places count, and nothing of what they are chosen by is told.
    const shown = isOfOther ? null : graph
    return {
      is_accepted: complaints.length === 0,
      complaints: complaints.map(toComplaint),
      needs: shown === null ? null : shown.needs,
      missing: shown === null ? null : toMissingView(shown.missing),
      engines: showsUnable && !isOfOther ? views : views.filter((engine) => engine.is_able),
      is_engine_judged: shown?.isEngineJudged ?? false,
      price: price === null ? null : toPriceView(price),
      wait: { ahead: wait.ahead, estimate_seconds: wait.seconds },
      reuse: reuse === null ? null : toReuseView(reuse, isOfOther),
    }
  }
}

/** What no engine has speaks against each of them here; a job that waits already may need it only of an engine that is away. */
function judgeEngine(
  engine: ListedEngine,
  { needs, missing }: JudgedGraph,
  availability: EngineAvailability,
): EngineView {
  const view = toEngineView(engine, needs, availability)
  const lack = missing.classes[0]?.classType ?? missing.weights[0]?.name ?? null
  return lack === null || !view.is_able ? view : { ...view, is_able: false, why_not: `lacks ${lack}` }
}

/** Whether a submit would be answered at once, and if not, why. */
function toReuseView(look: ReuseLook, isOfOther: boolean) {
  if (look.key === null) return { reused_from: null, why_not: isOfOther ? NOT_REPEATABLE : look.whyNot }
  if (look.found !== null) return { reused_from: look.found.jobId, why_not: null }
  return { reused_from: null, why_not: 'no earlier job of this account has this result' }
}

const NOT_REPEATABLE = 'it is not known that the same inputs give the same result'

function toPriceView({ holdMicros, perSecondMicros, minimumMicros }: PoolPrice) {
  return {
    hold_usd: writeUsd(holdMicros),
    per_second_usd: writeUsd(perSecondMicros),
    minimum_usd: writeUsd(minimumMicros),
  }
}

const JOB_ENDS = USUAL_EVENTS.filter((event) => event.startsWith('job.'))

/** The address that a submit brings along. */
function readJobWebhook(value: JsonValue | undefined, check: ContractCheck): HookWish | null {
  if (value === undefined || value === null) return null
  if (isJsonObject(value)) mustBeSecret(value['secret'], 'webhook.secret')
  const problem = check('JobWebhook', value, 'webhook')
  if (problem !== null) throw new ServiceError('invalid_field', problem, { details: { field: 'webhook' } })
  const { url, events, secret } = typeof value === 'string' ? ({ url: value } as JsonObject) : (value as JsonObject)
  return {
    url: url as string,
    events: (events as readonly string[] | undefined) ?? JOB_ENDS,
    secret: readSecret(secret, 'webhook.secret'),
  }
}
