/** Prompts: submitted as jobs, and counted. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import type { PromptOutcome } from '../../../domain/jobs/submit/submit-prompt.ts'
import { claimOf } from '../../kit/bodies/body-memory.ts'
import { type Api, barePathOf, type OperationDeps, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'
import { toClientId } from '../prompts/job-clients.ts'
import { type PromptRefusal, toPromptRefusal, toShownErrors } from '../prompts/prompt-errors.ts'
import { splitExtraDataSteps } from '../prompts/prompt-extra-data.ts'
import { type PromptFields, readPrompt, toFloatText, toPriority } from '../prompts/prompt-request.ts'

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
    const { number, outcome } = await submit(request, fields)
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
