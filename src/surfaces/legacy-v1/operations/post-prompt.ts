/**
 * Accepts a prompt. The job is in the queue, and its audience known, before the answer leaves; a prompt of which only a part
 * can run is accepted with the errors of the rest. Every refusal has the one shape that clients of this route read.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import type { PromptOutcome } from '../../../domain/jobs/submit/submit-prompt.ts'
import { claimOf } from '../../kit/body-room.ts'
import { toAudience } from '../audience.ts'
import { splitExtraData } from '../extra-notes.ts'
import { type Api, barePathOf, type OperationDeps, sendJsonText } from '../operation.ts'
import { type PromptRefusal, toPromptRefusal, toShownErrors } from '../prompt-errors.ts'
import { type PromptFields, readPrompt, toFloatText, toPriority } from '../prompt-request.ts'
import { readLooseObject } from '../read-body.ts'

const PROMPT_PATH = '/prompt'
const MAX_USAGE_SOURCE_LENGTH = 64
// Bounds what a stream of accounts can make us count; a counter that is forgotten begins anew.
const MAX_COUNTERS = 100_000

export function postPrompt(api: Api, deps: OperationDeps): void {
  const nextNumber = createCounters()

  async function submit(
    request: FastifyRequest,
    fields: PromptFields,
  ): Promise<{ text: string; outcome: PromptOutcome }> {
    const { accountId, scopes } = deps.callerOf(request)
    const place = toPlace(fields, () => nextNumber(accountId))
    const id = fields.id === null ? deps.newPromptId() : deps.jobs.chooseId(accountId, fields.id)
    const { forRun, kept, remembered } = splitExtraData(toExtraData(request, fields, deps.clock.now()))
    const keptText = await write(request, kept)
    // Before the job exists: its first event may come before the submit has answered. An id that is known already is
    // somebody's job, and stays what it is.
    const isNew = !deps.audiences.has(id)
    if (isNew) deps.audiences.remember(id, toAudience(fields.clientId))
    try {
      const outcome = await submitAs(id)
      if (outcome.outcome === 'accepted') deps.notes.remember(id, await write(request, remembered))
      else if (isNew) deps.audiences.forget(id)
      return { text: place.text, outcome }
    } catch (error) {
      if (isNew) deps.audiences.forget(id)
      throw error
    }

    function submitAs(promptId: string): Promise<PromptOutcome> {
      return deps.jobs.submitPrompt({
        accountId,
        scopes,
        id: promptId,
        workflow: fields.workflow,
        targets: fields.targets,
        extraData: forRun,
        priority: place.priority,
        submission: {
          number: place.text,
          clientId: fields.clientId,
          workflowId: fields.workflowId,
          extraData: keptText,
        },
      })
    }
  }

  api.both('POST', PROMPT_PATH, async (request, reply) => {
    const { fields, refusal } = readPrompt(await readLooseObject(request, deps.limits.maxBodyBytes))
    if (fields === null) return refuse(reply, refusal)
    const { text, outcome } = await submit(request, fields)
    if (outcome.outcome === 'rejected') return refuse(reply, toPromptRefusal(400, outcome.error, outcome.nodeErrors))
    const errors = await write(request, toShownErrors(outcome.nodeErrors))
    return sendJsonText(reply, `{"prompt_id":"${outcome.job.id}","number":${text},"node_errors":${errors}}`)
  })
}

/** Whether this is the route: whatever refuses it, also before it is reached, answers in its shape. */
export function isPromptSubmit(request: FastifyRequest): boolean {
  return request.method === 'POST' && barePathOf(request) === PROMPT_PATH
}

async function refuse(reply: FastifyReply, { status, body }: PromptRefusal): Promise<FastifyReply> {
  return sendJsonText(reply, await write(reply.request, body), status)
}

/**
 * In slices: a graph may have errors in thousands of nodes. They quote what was sent, and what was sent may be a number beyond
 * what JSON.stringify can write.
 */
function write({ raw }: FastifyRequest, value: object): Promise<string> {
  return claimOf(raw).turns.run(writeJsonSteps(value as JsonObject))
}

interface QueuePlace {
  readonly text: string
  readonly priority: number
}

/**
 * A number of the caller's own orders its prompt among all others, zero being the ordinary place; `front` goes before
 * everything that waits, the newest first; everybody else queues behind whoever came before.
 */
function toPlace({ number, isFront }: PromptFields, count: () => number): QueuePlace {
  if (number !== null) return { text: toFloatText(number), priority: toPriority(number) }
  const counted = count()
  if (!isFront) return { text: String(counted), priority: 0 }
  return { text: counted === 0 ? '0' : String(-counted), priority: Math.max(1, toPriority(-counted)) }
}

/** Counts per account: a number must not tell how much others submit. */
function createCounters(): (accountId: string) => number {
  const counters = new Map<string, number>()
  return (accountId) => {
    const number = counters.get(accountId) ?? 0
    counters.delete(accountId)
    counters.set(accountId, number + 1)
    const [oldest] = counters.keys()
    if (counters.size > MAX_COUNTERS && oldest !== undefined) counters.delete(oldest)
    return number
  }
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
