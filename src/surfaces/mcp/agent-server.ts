/**
 * The tools and resources as a server of the Model Context Protocol, through its official library. One definition serves every
 * transport and both generations of the protocol: with the handshake of 2025 and with the single requests of 2026.
 */
import {
  createMcpHandler,
  fromJsonSchema,
  type JSONValue,
  type McpHttpHandler,
  McpServer,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { ServiceError } from '../../domain/errors.ts'
import { JOB_URI, OUTPUT_URI, toJobFacts } from './job-text.ts'
import { ApiRefusal, type ServiceApi, toFields } from './service-api.ts'
import { type Tool, type ToolCall, ToolError, type ToolHost, type ToolInput } from './tool.ts'
import { findEndpointTool, listEndpointTools } from './tools/endpoints.ts'
import { fileTools } from './tools/files.ts'
import { JOB_TOOLS } from './tools/jobs.ts'
import { MODEL_TOOLS } from './tools/models.ts'
import { NODE_TOOLS } from './tools/nodes.ts'
import { SCHEDULE_TOOLS } from './tools/schedules.ts'
import { WORKFLOW_TOOLS } from './tools/workflows.ts'

interface AgentServerOptions {
  /** Of the service. */
  readonly version: string
  /** The agent may name files of the machine that it runs on. */
  readonly isOnThisMachine: boolean
  readonly hasModels: boolean
}

const JOBS =
  'To make something with a workflow: submit_workflow, then watch_job, then get_output for its outputs. Jobs go on when this connection ends; list_jobs finds them again. submit_workflow may cost money; validate_workflow costs nothing. The tools run_… of endpoints take named inputs and give what they make.'
const WITH_MODELS = `This service runs ComfyUI workflows as jobs, and models of several providers. ${JOBS} To call a model: find_models, get_model_schema, run_model. Calls go on like jobs. run_model may cost money; estimate_model costs nothing.`
const WITHOUT_MODELS = `This service runs ComfyUI workflows as jobs. ${JOBS}`

/** Makes servers; schemas are compiled once for all of them. */
export function createAgentServers(options: AgentServerOptions): (host: ToolHost) => McpServer {
  const { version, isOnThisMachine, hasModels } = options
  const modelTools = hasModels ? MODEL_TOOLS : []
  const tools = [
    ...NODE_TOOLS,
    ...modelTools,
    ...WORKFLOW_TOOLS,
    ...JOB_TOOLS,
    ...SCHEDULE_TOOLS,
    ...fileTools(isOnThisMachine),
  ]
  const instructions = hasModels ? WITH_MODELS : WITHOUT_MODELS
  const prepared = new Map(tools.map((tool) => [tool.name, { tool, inputSchema: toSchema(tool) }]))
  const listed = tools.map(toListed)
  const taken = new Set(prepared.keys())
  return (host) => {
    const server = new McpServer({ name: 'atelier', title: 'Atelier', version }, { instructions })
    // The library lists what was registered once; the tools of endpoints come and go.
    server.server.registerCapabilities({ tools: { listChanged: false } })
    server.server.setRequestHandler('tools/list', async (_request, { mcpReq }) => {
      const endpoints = await listEndpointTools(host.api, taken, mcpReq.signal)
      return { tools: [...listed, ...endpoints.map(toListed)] }
    })
    server.server.setRequestHandler('tools/call', async ({ params }, context) => {
      const { name, arguments: input = {} } = params
      const call = { ...host, signal: context.mcpReq.signal, tell: createTell(context) }
      const known = prepared.get(name)
      if (known !== undefined) return callTool(known, input, call)
      return callEndpoint(name, input, { call, taken })
    })
    addResources(server, host)
    return server
  }
}

function toListed(tool: Tool) {
  const { name, title, description, properties, required = [] } = tool
  const inputSchema = { type: 'object' as const, properties, required: [...required], additionalProperties: false }
  return { name, title, description, inputSchema: inputSchema as ListedSchema, annotations: toAnnotations(tool) }
}

type ListedSchema = { type: 'object'; [member: string]: JSONValue | undefined }

interface PreparedTool {
  readonly tool: Tool
  readonly inputSchema: ReturnType<typeof toSchema>
}

async function callTool({ tool, inputSchema }: PreparedTool, input: object, call: ToolCall) {
  const checked = await inputSchema['~standard'].validate(input)
  if (checked.issues === undefined) return runTool(tool, checked.value, call)
  const said = checked.issues.map(({ message }) => message).join('; ')
  return toToolError(`Input validation error: Invalid arguments for tool ${tool.name}: ${said}`)
}

/** The service checks the inputs, and names every one that is wrong. */
async function callEndpoint(
  name: string,
  input: ToolInput,
  { call, taken }: { readonly call: ToolCall; readonly taken: ReadonlySet<string> },
) {
  let tool: Tool | null
  try {
    tool = await findEndpointTool(call.api, { name, taken, signal: call.signal })
  } catch (error) {
    if (!isExpected(error)) throw error
    return toToolError(error.message)
  }
  if (tool === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Tool ${name} not found`)
  return runTool(tool, input, call)
}

function toToolError(said: string) {
  return { content: [{ type: 'text' as const, text: said }], isError: true }
}

export function openAgentHandler(factory: McpServerFactory, onerror: (error: Error) => void): McpHttpHandler {
  // Always as a stream, even without progress to report: its keep-alive comments hold the connection open while a job is waited for.
  return createMcpHandler(factory, {
    legacy: 'stateless',
    responseMode: 'sse',
    maxSubscriptions: MAX_SUBSCRIPTIONS,
    onerror,
  })
}

// Clients may subscribe to changes of lists, and are told of none: the list of tools is made when it is asked for.
const MAX_SUBSCRIPTIONS = 64

function toSchema({ properties, required = [] }: Tool) {
  return fromJsonSchema<ToolInput>({
    type: 'object',
    properties: properties as Record<string, Record<string, unknown>>,
    required: [...required],
    additionalProperties: false,
  })
}

function toAnnotations({ isReadOnly, isDestructive = false }: Tool) {
  return { readOnlyHint: isReadOnly, destructiveHint: isDestructive, openWorldHint: false }
}

/** Refusals are sent to the agent; defects go to the log. */
async function runTool(tool: Tool, input: ToolInput, call: ToolCall) {
  try {
    return { content: [...(await tool.run(input, call))] }
  } catch (error) {
    if (!isExpected(error) && !call.signal.aborted) call.onDefect(error)
    const said = isExpected(error) ? error.message : 'something went wrong on our side'
    return toToolError(said)
  }
}

function isExpected(error: unknown): error is Error {
  return error instanceof ToolError || error instanceof ApiRefusal || error instanceof ServiceError
}

/** Progress is sent only to clients that asked for it, and each value must be greater than the previous one. */
function createTell({ mcpReq }: ServerContext): ToolCall['tell'] {
  const progressToken = mcpReq._meta?.progressToken
  let last = Number.NEGATIVE_INFINITY
  return async (progress, message, total) => {
    if (progressToken === undefined || progress <= last) return
    last = progress
    const params = { progressToken, progress, message, ...(total !== undefined && { total }) }
    await mcpReq.notify({ method: 'notifications/progress', params })
  }
}

function addResources(server: McpServer, { api }: ToolHost): void {
  server.registerResource(
    'job',
    new ResourceTemplate(`${JOB_URI}{id}`, {
      list: async ({ mcpReq }) => ({ resources: await listJobResources(api, mcpReq.signal) }),
    }),
    { title: 'Job', description: 'A job with its outputs, as JSON.', mimeType: 'application/json' },
    (uri, { id }, { mcpReq }) => read(uri, readJobResource(uri.href, String(id), api, mcpReq.signal)),
  )
  server.registerResource(
    'output',
    new ResourceTemplate(`${OUTPUT_URI}{id}`, { list: undefined }),
    { title: 'Output', description: 'The file of an output, or its address when it is large.' },
    (uri, { id }, { mcpReq }) => read(uri, readOutputResource(uri.href, String(id), api, mcpReq.signal)),
  )
}

async function read<Content>(uri: URL, content: Promise<Content>): Promise<{ contents: Content[] }> {
  try {
    return { contents: [await content] }
  } catch (error) {
    if (error instanceof ApiRefusal && error.status === 404) throw new ResourceNotFoundError(uri.href)
    throw error
  }
}

// Jobs and outputs as resources: an agent's host can list, attach and read them without a tool.

const MAX_LISTED = 50
// In base64 within one message; anything larger is fetched from its address.
const MAX_FILE_BYTES = 4_194_304

async function listJobResources(api: ServiceApi, signal: AbortSignal) {
  const { jobs } = toFields(await (await api.call(`/api/v2/jobs?limit=${MAX_LISTED}`, { signal })).json())
  return (Array.isArray(jobs) ? jobs : []).map(toFields).map(({ id, status, created_at: at }) => ({
    uri: `${JOB_URI}${id}`,
    name: `job ${id}`,
    description: `${status}, submitted ${at}`,
    mimeType: 'application/json',
  }))
}

async function readJobResource(uri: string, id: string, api: ServiceApi, signal: AbortSignal) {
  const job: unknown = await (await api.call(`/api/v2/jobs/${encodeURIComponent(id)}`, { signal })).json()
  return { uri, mimeType: 'application/json', text: JSON.stringify(toJobFacts(job, api)) }
}

async function readOutputResource(uri: string, id: string, api: ServiceApi, signal: AbortSignal) {
  const path = `/api/v2/assets/${encodeURIComponent(id)}`
  const asset = toFields(await (await api.call(path, { signal })).json())
  const { content_type: type, size_bytes: size, url } = asset
  const bytes = Number(size) > MAX_FILE_BYTES ? null : await api.download(id, MAX_FILE_BYTES, signal)
  if (bytes !== null) return { uri, mimeType: String(type), blob: bytes.toString('base64') }
  const address = api.toPublicUrl(String(url))
  return { uri, mimeType: 'text/plain', text: `This file has ${size} bytes. Download it from ${address}` }
}
