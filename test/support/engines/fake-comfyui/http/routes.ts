/** The HTTP side of the fake server: what an adapter calls, answered as ComfyUI answers, with the faults in between. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import { parseLosslessJson, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import { type FakeFaults, strikes, strikesPath } from '../faults.ts'
import { FakeFiles, type Folder } from '../files.ts'
import type { FakeModels } from '../models.ts'
import { type Prompt, type PromptQueue, toTuple } from '../prompt-queue.ts'
import { readUpload } from './read-upload.ts'
import { validatePrompt } from './validate-prompt.ts'
import { sendFile } from './view.ts'

export interface RouteParts {
  readonly faults: FakeFaults
  readonly version: string
  readonly files: FakeFiles
  readonly models: FakeModels
  queue(): PromptQueue
  classes(): Record<string, NodeDefinition>
  features(): object
  isInputThere(name: string): boolean
  accept(prompt: Prompt): void
  nextNumber(): number
  interruptRunning(id: string | null): boolean
  free(): void
  deleteAsset(id: string): boolean
  subscribeLogs(clientId: string): void
  printed(): readonly object[]
}

type Body = Record<string, unknown>
type Handler = (parts: RouteParts, call: Call) => unknown

interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
  readonly path: string
  readonly body: Buffer
}

/** What a server could do without. */
const BARED: ReadonlySet<string> = new Set([
  'GET /prompt',
  'GET /system_stats',
  'GET /features',
  'POST /history',
  'PATCH /internal/logs/subscribe',
  'GET /internal/logs/raw',
  'GET /experiment/models',
])
const SECRETS: ReadonlySet<string> = new Set(['auth_token_comfy_org', 'api_key_comfy_org'])

const ROUTES: readonly (readonly [method: string, pattern: RegExp, handler: Handler])[] = [
  ['GET', /^\/prompt$/, ({ queue }, call) => json(call, { exec_info: { queue_remaining: queue().remaining() } })],
  ['POST', /^\/prompt$/, postPrompt],
  ['GET', /^\/queue$/, getQueue],
  ['POST', /^\/queue$/, postQueue],
  ['GET', /^\/history\/[^/]+$/, getHistory],
  ['POST', /^\/history$/, postHistory],
  ['POST', /^\/interrupt$/, postInterrupt],
  ['POST', /^\/jobs\/[^/]+\/cancel$/, cancelJob],
  [
    'POST',
    /^\/free$/,
    (parts, call) => {
      parts.free()
      empty(call)
    },
  ],
  [
    'GET',
    /^\/object_info$/,
    async ({ faults, classes }, call) => {
      if (faults.objectInfoMs > 0) await new Promise((resolve) => setTimeout(resolve, faults.objectInfoMs))
      json(call, classes())
    },
  ],
  ['GET', /^\/system_stats$/, ({ version }, call) => json(call, systemStats(version))],
  ['GET', /^\/features$/, ({ faults, features }, call) => (faults.noFeatures ? missing(call) : json(call, features()))],
  ['GET', /^\/experiment\/models$/, ({ models }, call) => json(call, models.folders())],
  ['GET', /^\/experiment\/models\/[^/]+$/, listModels],
  ['GET', /^\/embeddings$/, (_parts, call) => json(call, [])],
  ['POST', /^\/upload\/image$/, upload],
  ['DELETE', /^\/assets\/[^/]+$/, deleteAsset],
  ['GET', /^\/view$/, view],
  ['PATCH', /^\/internal\/logs\/subscribe$/, subscribe],
  [
    'GET',
    /^\/internal\/logs\/raw$/,
    ({ faults, printed }, call) => (faults.noLogs ? missing(call) : json(call, { entries: printed(), size: null })),
  ],
]

export async function answer(parts: RouteParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const path = url.pathname.replace(/^\/api(?=\/)/, '')
  const received: Buffer[] = []
  for await (const part of request) received.push(part as Buffer)
  const call = { request, response, url, path, body: Buffer.concat(received) }
  const { faults } = parts
  if (strikesPath(faults.mute, path)) return
  if (strikesPath(faults.unavailable, path)) return void status(call, 503)
  if (strikesPath(faults.garbage, path)) {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"this is": not JSON')
    return
  }
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const route = ROUTES.find(([verb, pattern]) => verb === method && pattern.test(path))
  const isBared = faults.isBare && (BARED.has(`${method} ${path}`) || request.method === 'HEAD')
  if (route === undefined || isBared) missing(call)
  else await route[2](parts, call)
}

function json({ response }: Call, value: unknown, code = 200): unknown {
  return response
    .writeHead(code, { 'content-type': 'application/json; charset=utf-8' })
    .end(stringifyLosslessJson(value as never))
}

function empty({ response }: Call): unknown {
  return response.writeHead(200).end()
}

function status({ response }: Call, code: number): unknown {
  return response.writeHead(code, { 'content-type': 'text/plain' }).end(`${code}`)
}

function missing(call: Call): unknown {
  return status(call, 404)
}

function readBody({ body }: Call): Body {
  return body.length === 0 ? {} : (parseLosslessJson(body.toString('utf8')) as unknown as Body)
}

function postPrompt(parts: RouteParts, call: Call): unknown {
  const { faults } = parts
  if (strikes(faults, 'busyPrompt')) return status(call, 503)
  if (strikes(faults, 'dropPrompt')) {
    return call.request.socket.destroy()
  }
  const body = readBody(call)
  const graph = body.prompt as Prompt['graph']
  const verdict = validatePrompt(graph, { classes: parts.classes(), isInputThere: parts.isInputThere })
  if (!verdict.ok) return json(call, verdict.body, 400)
  const {
    extra_data: extra = {},
    client_id: clientId,
    prompt_id: asked,
  } = body as { extra_data?: Body; client_id?: string; prompt_id?: string }
  const id = faults.ignorePromptId || asked === undefined ? crypto.randomUUID() : asked
  const number = parts.nextNumber()
  const shown = Object.entries(extra).filter(([name]) => !SECRETS.has(name))
  const extraData = {
    ...Object.fromEntries(shown),
    ...(clientId === undefined ? {} : { client_id: clientId }),
    create_time: Date.now(),
  }
  parts.accept({ number, id, graph, extraData, secrets: extra, outputs: verdict.outputs })
  if (strikes(faults, 'dropPromptReply')) return call.request.socket.destroy()
  return json(call, { prompt_id: id, number, node_errors: faults.partialAcceptance ? PARTIAL : {} })
}

const PARTIAL = {
  '9': {
    errors: [
      {
        type: 'required_input_missing',
        message: 'Required input is missing',
        details: 'images',
        extra_info: { input_name: 'images' },
      },
    ],
    dependent_outputs: ['9'],
    class_type: 'SaveImage',
  },
}

function getQueue({ queue }: RouteParts, call: Call): unknown {
  const { running, pending } = queue()
  return json(call, { queue_running: running === null ? [] : [toTuple(running)], queue_pending: pending.map(toTuple) })
}

function postQueue({ queue }: RouteParts, call: Call): unknown {
  const { delete: ids = [] } = readBody(call) as { delete?: string[] }
  for (const id of ids) queue().delete(id)
  return empty(call)
}

function getHistory({ queue }: RouteParts, call: Call): unknown {
  const id = call.path.split('/').at(-1) ?? ''
  const record = queue().history.get(id)
  return json(call, record === undefined ? {} : { [id]: record })
}

function postHistory({ queue }: RouteParts, call: Call): unknown {
  const { delete: ids = [] } = readBody(call) as { delete?: string[] }
  for (const id of ids) queue().history.delete(id)
  return empty(call)
}

function postInterrupt({ faults, interruptRunning }: RouteParts, call: Call): unknown {
  const { prompt_id: id } = readBody(call) as { prompt_id?: string }
  if (!faults.ignoreInterrupt) interruptRunning(faults.blindInterrupt ? null : (id ?? null))
  return empty(call)
}

function cancelJob({ faults, queue, interruptRunning }: RouteParts, call: Call): unknown {
  if (faults.noJobsApi || !call.url.pathname.startsWith('/api/')) return missing(call)
  const id = call.path.split('/')[2] ?? ''
  const cancelled = !faults.ignoreInterrupt && (queue().delete(id) || interruptRunning(id))
  return json(call, { cancelled })
}

function deleteAsset(parts: RouteParts, call: Call): unknown {
  const id = call.path.split('/')[2] ?? ''
  return status(call, parts.faults.hasAssets && parts.deleteAsset(id) ? 204 : 404)
}

function upload({ faults, files }: RouteParts, call: Call): unknown {
  if (strikes(faults, 'uploadError')) return status(call, 500)
  const form = readUpload(call.request, call.body)
  if (form === null) return status(call, 400)
  const { filename, subfolder, type, bytes } = form
  files.put(FakeFiles.path(type, subfolder, filename), bytes)
  return json(call, { name: filename, subfolder, type })
}

function view({ faults, files }: RouteParts, call: Call): unknown {
  const { searchParams } = call.url
  const folder = (searchParams.get('type') ?? 'output') as Folder
  const path = FakeFiles.path(folder, searchParams.get('subfolder') ?? '', searchParams.get('filename') ?? '')
  const bytes = files.get(path)
  if (bytes === undefined) return missing(call)
  return sendFile(call, { bytes, faults, name: path })
}

function listModels({ models }: RouteParts, call: Call): unknown {
  const files = models.files(call.path.split('/')[3] ?? '')
  return files === null ? missing(call) : json(call, files)
}

function subscribe({ faults, subscribeLogs }: RouteParts, call: Call): unknown {
  if (faults.noLogs) return missing(call)
  const { clientId } = readBody(call) as { clientId?: string }
  subscribeLogs(String(clientId))
  return empty(call)
}

function systemStats(version: string): object {
  return {
    system: {
      os: 'posix',
      comfyui_version: version,
      python_version: '3.12',
      pytorch_version: '2.9',
      embedded_python: false,
      argv: [],
      ram_total: 1,
      ram_free: 1,
    },
    devices: [{ name: 'cuda:0 Fake', type: 'cuda', index: 0, vram_total: 25_769_803_776, vram_free: 20_000_000_000 }],
  }
}
