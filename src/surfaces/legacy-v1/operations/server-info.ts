/** What clients ask a server about itself, mostly when they connect. The shapes are ComfyUI's. */
import { freemem, totalmem } from 'node:os'
import type { FastifyRequest } from 'fastify'
import { describeReplacements } from '../../../../engine/graph/replace-classes.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { loadOpenApi, type ServedDocument } from '../../kit/contracts/contract.ts'
import { serviceAddressOf } from '../../kit/guards/routes.ts'
import { readFolder, toBaseName } from '../files/file-names.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  readLooseJson,
  readLooseObject,
  sendJson,
  sendJsonText,
  sendText,
} from '../legacy-operation.ts'
import { toClientId } from '../ws/client-news.ts'
import type { LogEntry } from '../ws/log-news.ts'
import { TERMINAL_SIZE } from '../ws/run-messages.ts'

/** The version of ComfyUI whose behaviour this surface follows. */
const COMFYUI_VERSION = '0.33.0'
const NONE = 'none'

/**
 * A figure without a true answer here is zero or "none"; the command line is not told, and the host's memory only by ComfyUI's editor
 * to the one user of a local service.
 */
export function getSystemStats(api: Api, { version, isForEditor, isOneAccountForAll }: OperationDeps): void {
  const runtime = isForEditor ? `not used (Node.js ${process.versions.node})` : NONE
  const readMemory = () =>
    isForEditor && isOneAccountForAll ? { total: totalmem(), free: freemem() } : { total: 0, free: 0 }
  const toStats = (memory: ReturnType<typeof readMemory>) => ({
    system: {
      os: process.platform,
      ram_total: memory.total,
      ram_free: memory.free,
      comfyui_version: COMFYUI_VERSION,
      required_frontend_version: NONE,
      installed_templates_version: null,
      required_templates_version: NONE,
      comfy_package_versions: [],
      python_version: runtime,
      pytorch_version: isForEditor ? 'not used' : NONE,
      embedded_python: false,
      deploy_environment: 'atelier',
      argv: ['atelier'],
      cloud_version: version,
      comfyui_frontend_version: NONE,
      workflow_templates_version: NONE,
    },
    devices: [
      {
        name: 'cpu',
        type: 'cpu',
        index: null,
        // The processor computes in the memory of the machine, as ComfyUI tells it.
        vram_total: memory.total,
        vram_free: memory.free,
        torch_vram_total: memory.total,
        torch_vram_free: memory.free,
      },
    ],
  })
  api.both('GET', '/system_stats', 'any_scope', async (_request, reply) => sendJson(reply, toStats(readMemory())))
}

/** What this server can do, as the socket says to a client that asks there, and how many jobs of the account run at a time. */
export function getFeatures(api: Api, { features, console: about, callerOf }: OperationDeps): void {
  api.both('GET', '/features', 'any_scope', async (request, reply) => {
    const { maxRunning } = await about.standingOf(callerOf(request))
    return sendJson(reply, maxRunning === null ? features : { ...features, max_concurrent_jobs: maxRunning })
  })
}

const CONTRACT = new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url)

/** The contract as it is served here: with this service's brands, and with or without credentials. */
export function loadContract({ gate, brands }: Pick<OperationDeps, 'gate' | 'brands'>): ServedDocument {
  return loadOpenApi(CONTRACT, { brands, needsCredentials: gate.hasCredentials })
}

/** The contract, with the address at which this caller reached us. */
export function getOpenapi(api: Api, deps: OperationDeps): void {
  const { textFor } = loadContract(deps)
  api.apiOnly('GET', '/openapi.json', 'any_scope', async (request, reply) => {
    const { origin, mountPrefix } = serviceAddressOf(request)
    return sendJsonText(reply, textFor(origin + mountPrefix))
  })
}

/** The address of the socket, asked for without a handshake: the refusal says what to send. Handshakes never come here. */
export function getWs(api: Api): void {
  api.both('GET', '/ws', 'jobs:read', async () => {
    throw new ServiceError('invalid_request', 'this address speaks WebSocket only: send a handshake (RFC 6455)')
  })
}

const EMPTY_MAPS = ['/workflow_templates', '/i18n', '/global_subgraphs']

/** Routes that clients call when they start, and whose answer never changes. */
export function fixedAnswers(api: Api, { limits, editorScripts }: OperationDeps): void {
  for (const path of EMPTY_MAPS) api.both('GET', path, 'any_scope', async (_request, reply) => sendJson(reply, {}))
  api.both('GET', '/extensions', 'any_scope', async (_request, reply) => sendJson(reply, editorScripts))
  api.both('GET', '/node_replacements', 'any_scope', async (_request, reply) => sendJson(reply, describeReplacements()))
  // Results are cached per account and bounded by memory: there is nothing that a caller could or should unload.
  api.both('POST', '/free', 'any_scope', async (request, reply) => {
    await readLooseJson(request, limits.maxBodyBytes)
    return sendJson(reply, {})
  })
  // The list above has none that could be named.
  api.both('GET', '/global_subgraphs/:id', 'any_scope', async () => {
    throw new ServiceError('not_found', 'there is no subgraph with this id')
  })
  api.both('GET', '/health', 'any_scope', async (_request, reply) => sendText(reply, 200, 'OK'))
}

// Routes that ComfyUI's editor uses: the lines that the account's latest run printed, and the names of its files.

/** The log lines of the account's latest run; nothing of the service's own log. */
export function logs(api: Api, { jobs, accountOf, limits, logReaders }: OperationDeps): void {
  async function read(request: FastifyRequest): Promise<LogEntry[]> {
    const accountId = accountOf(request)
    const [newest] = await jobs.records.history(accountId, { maxItems: 1, offset: null })
    const log = newest === undefined ? null : await jobs.reader.log(accountId, newest.job.id)
    if (log === null) return []
    const t = log.capturedAt.toISOString()
    return log.text.split('\n').flatMap((line) => (line === '' ? [] : [{ t, m: `${line}\n` }]))
  }

  api.both('GET', '/internal/logs', 'jobs:read', async (request, reply) => {
    const entries = await read(request)
    return sendJsonText(reply, JSON.stringify(entries.map(({ t, m }) => `${t} - ${m}`).join('')))
  })
  api.both('GET', '/internal/logs/raw', 'jobs:read', async (request, reply) =>
    sendJson(reply, { entries: await read(request), size: TERMINAL_SIZE }),
  )
  // From now on the sockets of this client hear what the account's runs print.
  api.both('PATCH', '/internal/logs/subscribe', 'jobs:read', async (request, reply) => {
    const { clientId, enabled } = await readLooseObject(request, limits.maxBodyBytes)
    const client = typeof clientId === 'string' ? toClientId(clientId) : null
    if (client !== null) logReaders.set(accountOf(request), client, enabled !== false)
    return sendJson(reply, {})
  })
}

const MAX_FILES = 1000

/** Names of the account's files in one of the three folders, the newest first. Where they are stored is never told. */
export function internalFiles(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('GET', '/internal/files/:folder', 'assets:read', async (request, reply) => {
    const folder = readFolder(paramOf(request, 'folder'))
    if (folder === null) return sendJson(reply, { error: 'Invalid directory type' }, 400)
    const files = await assets.list(accountOf(request), folder, MAX_FILES)
    const names = [...new Set(files.map(({ filePath }) => toBaseName(filePath ?? '')))]
    return sendJson(
      reply,
      names.filter((name) => name !== '' && !name.startsWith('.')).map((name) => `${name} [${folder}]`),
    )
  })
  api.both('GET', '/internal/folder_paths', 'any_scope', async (_request, reply) => sendJson(reply, {}))
}
