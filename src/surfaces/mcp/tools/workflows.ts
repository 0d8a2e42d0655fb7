/**
 * Tools about workflows: from what the editor saves to a job. A workflow is given as an object, or as its JSON text where a number
 * has more digits than an agent's JSON carries (a seed may have twenty).
 */
import { randomUUID } from 'node:crypto'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { tellJob } from '../job-text.ts'
import { ApiRefusal, type ServiceApi } from '../service-api.ts'
import { type Tool, ToolError, type ToolInput, text } from '../tool.ts'

const WORKFLOW = {
  anyOf: [{ type: 'object' }, { type: 'string' }],
  description:
    'A workflow in API format ({"node id": {"class_type", "inputs"}}) or as ComfyUI\'s editor saves it, as an object or as JSON text.',
}
const CHANGES = {
  type: 'object',
  maxProperties: 200,
  description:
    'Inputs to set before it is used, by "node id.input", such as {"3.seed": 7}. Node ids are those of the API format.',
}
const SUBMITTED = {
  workflow: WORKFLOW,
  changes: CHANGES,
  metadata: {
    type: 'object',
    additionalProperties: { type: 'string', maxLength: 512 },
    description: 'Words of your own to find the job by.',
  },
}

function readWorkflow(input: ToolInput): JsonObject {
  const given = input['workflow']
  try {
    const value = parseLosslessJson(typeof given === 'string' ? given : JSON.stringify(given))
    if (isJsonObject(value)) return value
  } catch (error) {
    throw new ToolError(`workflow is not valid JSON: ${(error as Error).message}`)
  }
  throw new ToolError('workflow must be a JSON object, or the text of one')
}

async function convert(workflow: JsonObject, api: ServiceApi, signal: AbortSignal): Promise<string> {
  const body = stringifyLosslessJson(workflow)
  return (await api.call('/api/v2/workflows/convert', { method: 'POST', body, signal })).text()
}

/** The body of a submit: in API format, with the changes made. */
async function toSubmit(input: ToolInput, api: ServiceApi, signal: AbortSignal): Promise<string> {
  const given = readWorkflow(input)
  const isSaved = Array.isArray(given['nodes'])
  const converted = isSaved ? parseLosslessJson(await convert(given, api, signal)) : null
  const workflow = converted === null ? given : (converted as JsonObject)['workflow']
  if (!isJsonObject(workflow)) throw new ToolError('the service converted this into no workflow')
  for (const [place, value] of Object.entries(input['changes'] ?? {})) setInput(workflow, place, value as JsonValue)
  const { metadata } = input
  return stringifyLosslessJson({ workflow, ...(metadata !== undefined && { metadata: metadata as JsonObject }) })
}

function setInput(workflow: JsonObject, place: string, value: JsonValue): void {
  // Nodes of subgraphs have ids with colons, never with points; an input may have points in its name.
  const [, nodeId = '', name = ''] = /^([^.]+)\.(.+)$/.exec(place) ?? []
  const node = Object.hasOwn(workflow, nodeId) ? workflow[nodeId] : null
  const inputs = isJsonObject(node) ? node['inputs'] : null
  if (!isJsonObject(inputs)) throw new ToolError(`changes: ${JSON.stringify(place)} names no node of the workflow`)
  Object.defineProperty(inputs, name, { value, enumerable: true, writable: true, configurable: true })
}

const convertWorkflow: Tool = {
  name: 'convert_workflow',
  title: 'Convert a workflow',
  description:
    "Turns a workflow as ComfyUI's editor saves it into API format, and says what is missing here and which inputs can be set by name. submit_workflow does so by itself; this is for looking at it first.",
  properties: { workflow: WORKFLOW },
  required: ['workflow'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    return [text(await convert(readWorkflow(input), api, signal))]
  },
}

const validateWorkflow: Tool = {
  name: 'validate_workflow',
  title: 'Check a workflow without running it',
  description:
    'Says what a submit would: every complaint with its node and input, missing classes and weights, the price where there is one. Nothing is stored.',
  properties: SUBMITTED,
  required: ['workflow'],
  isReadOnly: true,
  async run(input, { api, signal }) {
    const body = await toSubmit(input, api, signal)
    const response = await api.call('/api/v2/jobs/validate', { method: 'POST', body, signal }).catch((error) => {
      const isUnknown = error instanceof ApiRefusal && (error.status === 404 || error.status === 405)
      throw isUnknown ? new ToolError('this service cannot check a workflow without running it') : error
    })
    return [text(await response.text())]
  },
}

const submitWorkflow: Tool = {
  name: 'submit_workflow',
  title: 'Submit a workflow',
  description:
    'Queues a workflow as a job, which may cost money, and gives its id at once. The job runs whatever becomes of this connection: watch_job follows it, get_job and list_jobs find it again.',
  properties: {
    ...SUBMITTED,
    idempotency_key: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      description: 'The same key with the same workflow gives the same job instead of a second one.',
    },
  },
  required: ['workflow'],
  isReadOnly: false,
  async run(input, { api, signal }) {
    const body = await toSubmit(input, api, signal)
    const headers = { 'Idempotency-Key': String(input['idempotency_key'] ?? randomUUID()) }
    const job: unknown = await (await api.call('/api/v2/jobs', { method: 'POST', headers, body, signal })).json()
    return tellJob(job, api)
  },
}

export const WORKFLOW_TOOLS = [convertWorkflow, validateWorkflow, submitWorkflow]
