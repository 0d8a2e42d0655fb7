/** Prompts: submitted as jobs, and counted. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import type { GivingRequest } from '../../../domain/assets/given-files.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { PromptOutcome } from '../../../domain/jobs/submit/submit-prompt.ts'
import { PRIORITY_LIMIT } from '../../../domain/jobs/submit/submit-times.ts'
import { claimOf } from '../../kit/bodies/body-memory.ts'
import { untilGone } from '../../kit/request.ts'
import { INVALID_PROMPT_ID, NO_PROMPT, type PromptRefusal, toPromptRefusal, toShownErrors } from '../legacy-errors.ts'
import {
  type Api,
  barePathOf,
  type OperationDeps,
  readLooseObject,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'
import { CREDENTIAL, splitExtraDataSteps } from '../prompts/prompt-extra-data.ts'
import { toClientId } from '../ws/client-news.ts'

const PROMPT_PATH = '/prompt'
const MAX_USAGE_SOURCE_LENGTH = 64

/**
 * Accepts a prompt. Its job is in the queue, and its client remembered, before the answer is sent. A prompt of which only a
 * part can run is accepted with the errors of the rest. Every refusal has the one shape that clients of this route read.
 */
export function postPrompt(api: Api, deps: OperationDeps): void {
  async function submit(
    request: FastifyRequest,
    fields: PromptFields,
    giving: GivingRequest,
  ): Promise<{ number: string; outcome: PromptOutcome }> {
    const { accountId, keyId } = deps.callerOf(request)
    const counted = fields.number === null ? await deps.jobs.records.nextPromptNumber(accountId) : null
    const position = toQueuePosition(fields, counted ?? 0)
    const id = fields.id === null ? deps.newPromptId() : deps.jobs.chooseId(accountId, fields.id)
    const { forRun, kept, remembered } = await claimOf(request.raw).turns.run(
      splitExtraDataSteps(toExtraData(request, fields, deps.clock.now())),
    )
    const keptText = await write(request, kept)
    // Before the job exists: its first event may come before the submit has answered. An id that is remembered already
    // belongs to a job that exists, whose client must stay.
    const isNew = !deps.jobClients.has(id)
    if (isNew) deps.jobClients.remember(id, toClientId(fields.clientId))
    try {
      const outcome = await submitAs(id)
      if (outcome.outcome === 'accepted') deps.extraData.remember(id, await write(request, remembered))
      else if (isNew) deps.jobClients.forget(id)
      return { number: position.number, outcome }
    } catch (error) {
      if (isNew) deps.jobClients.forget(id)
      throw error
    }

    function submitAs(promptId: string): Promise<PromptOutcome> {
      return deps.jobs.submitPrompt({
        accountId,
        keyId,
        giving,
        id: promptId,
        workflow: fields.workflow,
        targets: fields.targets,
        extraData: forRun,
        priority: position.priority,
        submission: {
          number: position.number,
          clientId: fields.clientId,
          workflowId: fields.workflowId,
          extraData: keptText,
        },
      })
    }
  }

  api.both('POST', PROMPT_PATH, 'jobs:write', async (request, reply) => {
    const { fields, refusal } = readPrompt(await readLooseObject(request, deps.limits.maxBodyBytes))
    if (fields === null) return refuse(reply, refusal)
    const { number, outcome } = await submit(request, fields, { signal: untilGone(request, reply) })
    if (outcome.outcome === 'rejected') return refuse(reply, toPromptRefusal(400, outcome.error, outcome.nodeErrors))
    const errors = await write(request, toShownErrors(outcome.nodeErrors))
    return sendJsonText(reply, `{"prompt_id":"${outcome.job.id}","number":${number},"node_errors":${errors}}`)
  })
}

/** Whether a request is for this route: all its refusals have the shape of the route, also those of guards before it. */
export function isPromptSubmit(request: FastifyRequest): boolean {
  return request.method === 'POST' && barePathOf(request) === PROMPT_PATH
}

async function refuse(reply: FastifyReply, { status, body }: PromptRefusal): Promise<FastifyReply> {
  return sendJsonText(reply, await write(reply.request, body), status)
}

/**
 * In steps, since a graph may have errors in thousands of nodes, and lossless, since errors quote what was sent, which may be a
 * number that JSON.stringify cannot write.
 */
function write({ raw }: FastifyRequest, value: object): Promise<string> {
  return claimOf(raw).turns.run(writeJsonSteps(value as JsonObject))
}

interface QueuePosition {
  /** As the answer shows it. */
  readonly number: string
  readonly priority: number
}

/**
 * An ordinary prompt has priority 0 and runs in the order of arrival. A prompt with a number of its own gets the negated number
 * as its priority: lower numbers run first. With `front` the priority is the account's count of prompts, over all processes: the
 * prompt runs before ordinary ones and before earlier ones with `front`; one whose own number is lower runs first. The numbers
 * are each account's own, so that they do not tell how much others submit.
 */
function toQueuePosition({ number, isFront }: PromptFields, counted: number): QueuePosition {
  if (number !== null) return { number: toFloatText(number), priority: toPriority(number) }
  if (!isFront) return { number: String(counted), priority: 0 }
  return { number: counted === 0 ? '0' : String(-counted), priority: Math.max(1, toPriority(-counted)) }
}

function toExtraData(request: FastifyRequest, { extraData, clientId }: PromptFields, now: Date): JsonObject {
  const source = request.headers['comfy-usage-source']
  return {
    ...extraData,
    ...(clientId !== null && { client_id: clientId }),
    ...(typeof source === 'string' && { comfy_usage_source: source.slice(0, MAX_USAGE_SOURCE_LENGTH) }),
    create_time: now.getTime(),
  }
}

/** How many prompts of the account run or wait. Clients ask it to see whether the server is there. */
export function getPrompt(api: Api, { jobs, accountOf }: OperationDeps): void {
  api.both('GET', '/prompt', 'jobs:read', async (request, reply) => {
    const remaining = await jobs.records.countLive(accountOf(request))
    return sendJson(reply, { exec_info: { queue_remaining: remaining } })
  })
}

/** The members of a `POST /prompt` body, read and checked one by one. The graph itself is validated elsewhere. */
interface PromptFields {
  readonly workflow: JsonValue
  readonly id: string | null
  readonly clientId: string | null
  /** null: the next number of the account's counter. */
  readonly number: number | null
  readonly isFront: boolean
  readonly targets: readonly string[] | null
  readonly extraData: JsonObject
  readonly workflowId: string | null
}

type PromptReading =
  | { readonly fields: PromptFields; readonly refusal: null }
  | { readonly fields: null; readonly refusal: PromptRefusal }

const MAX_CLIENT_ID_LENGTH = 256
const MAX_TARGETS = 20_000
const MAX_NAME_LENGTH = 64
/** A float as clients write one into a text. */
const FLOAT = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

function readPrompt(body: JsonObject): PromptReading {
  const workflow = member(body, 'prompt')
  if (workflow === undefined) return { fields: null, refusal: NO_PROMPT }
  const id = member(body, 'prompt_id') ?? null
  if (id !== null && (typeof id !== 'string' || !isUuid(id))) return { fields: null, refusal: INVALID_PROMPT_ID }
  const extraData = readObject(member(body, 'extra_data'), 'extra_data')
  checkExtraData(extraData)
  const clientId = member(body, 'client_id') ?? member(extraData, 'client_id') ?? null
  const fields: PromptFields = {
    workflow,
    id,
    // The same rule as for the id of a socket, so that the two are equal.
    clientId: typeof clientId === 'string' && clientId.length <= MAX_CLIENT_ID_LENGTH ? clientId.toWellFormed() : null,
    number: readNumber(member(body, 'number')),
    isFront: isTruthy(member(body, 'front')),
    targets: readTargets(member(body, 'partial_execution_targets')),
    extraData,
    workflowId: readWorkflowId(body, extraData),
  }
  return { fields, refusal: null }
}

/** Only own members: `constructor` and the like are inherited by every object. */
function member(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

function readObject(value: JsonValue | undefined, name: string): JsonObject {
  if (value === undefined || value === null) return {}
  if (!isJsonObject(value)) throw invalid(`${name} must be an object`)
  return value
}

function checkExtraData(extraData: JsonObject): void {
  readObject(member(extraData, 'extra_pnginfo'), 'extra_data.extra_pnginfo')
  for (const [name, value] of Object.entries(extraData)) {
    if (!CREDENTIAL.test(name) || typeof value === 'string' || value === null) continue
    throw invalid(`extra_data.${name.slice(0, MAX_NAME_LENGTH)} must be a text`)
  }
}

function readNumber(value: JsonValue | undefined): number | null {
  if (value === undefined || value === null) return null
  const number = toNumber(value)
  if (number === null || !Number.isFinite(number)) throw invalid('number must be a number')
  return number
}

function toNumber(value: JsonValue): number | null {
  if (value instanceof NumberText) return value.value
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  if (typeof value === 'string') return FLOAT.test(value) ? Number(value) : null
  return typeof value === 'boolean' ? Number(value) : null
}

/** As Python sees it: clients send `true`, `1` and `"true"` alike. */
function isTruthy(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== 0 && value !== ''
}

function readTargets(value: JsonValue | undefined): readonly string[] | null {
  if (value === undefined || value === null) return null
  if (!Array.isArray(value) || value.length > MAX_TARGETS)
    throw invalid('partial_execution_targets must be a list of node ids')
  return value.map((id) => {
    if (typeof id === 'string') return id
    throw invalid('partial_execution_targets must be a list of node ids')
  })
}

function readWorkflowId(body: JsonObject, extraData: JsonObject): string | null {
  const pngInfo = member(extraData, 'extra_pnginfo')
  const saved = isJsonObject(pngInfo) ? member(pngInfo, 'workflow') : undefined
  const id = member(body, 'workflow_id') ?? (isJsonObject(saved) ? member(saved, 'id') : undefined)
  return typeof id === 'string' && id.length <= MAX_CLIENT_ID_LENGTH ? id : null
}

/** The text of a number as Python writes a float: a caller's own number always comes back with a point. */
function toFloatText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? `${value}.0` : String(value)
}

/** Lower numbers run first here, higher priorities run first in the queue. */
function toPriority(number: number): number {
  return Math.min(PRIORITY_LIMIT, Math.max(-PRIORITY_LIMIT, Math.round(-number))) || 0
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}
