/** The same tools over standard input and output, for an agent that starts this program: `atelier mcp`. */
import { openAsBlob } from 'node:fs'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { NodeCatalog, NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { isJsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { AgentConnection } from '../kit/surface-parts.ts'
import { createAgentServers } from './agent-server.ts'
import { ApiRefusal, createServiceApi, readBytes, type ServiceApi } from './service-api.ts'
import { ToolError, type ToolHost } from './tool.ts'

// The classes of a large ComfyUI take a few megabytes.
const MAX_CATALOG_BYTES = 67_108_864
const CATALOG_KEPT_MS = 60_000

/** Until the agent ends the connection, or the signal does. */
export async function serveOverStdio(connection: AgentConnection): Promise<void> {
  const { server, version, folders, pictures, input, output, signal, warn } = connection
  const api = createServiceApi({ baseUrl: server.baseUrl, publicUrl: server.baseUrl, credential: server.token })
  const onDefect = (error: unknown) => warn(error instanceof Error ? (error.stack ?? error.message) : String(error))
  const host: ToolHost = { api, catalog: createCatalog(api), pictures, onDefect, openFile: createOpenFile(folders) }
  const createServer = createAgentServers({ version, isOnThisMachine: folders.length > 0, hasModels: true })
  const handle = serveStdio(() => createServer(host), {
    transport: new StdioServerTransport(input, output),
    onerror: (error) => warn(error.message),
  })
  await ended(input, output, signal)
  await handle.close()
}

function ended(input: Readable, output: Writable, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  for (const name of ['end', 'close', 'error']) input.once(name, () => resolve())
  output.once('error', () => resolve())
  signal.addEventListener('abort', () => resolve())
  return promise
}

/** What the engines can run changes seldom, and is long. */
function createCatalog(api: ServiceApi): ToolHost['catalog'] {
  let kept: { readonly catalog: Pick<NodeCatalog, 'classTypes' | 'find'>; readonly at: number } | null = null
  return async (signal) => {
    if (kept !== null && performance.now() - kept.at < CATALOG_KEPT_MS) return kept.catalog
    const answer = await api.call('/api/object_info', { signal }).catch((error: unknown) => {
      const isMissing = error instanceof ApiRefusal && error.status === 404
      throw isMissing ? new ToolError('this address does not say which node classes there are') : error
    })
    const bytes = await readBytes(answer, MAX_CATALOG_BYTES)
    const classes = bytes === null ? null : parseLosslessJson(bytes.toString('utf8'))
    if (!isJsonObject(classes)) throw new ToolError('the service does not say which node classes it has')
    const find = (name: string) => (Object.hasOwn(classes, name) ? (classes[name] as unknown as NodeDefinition) : null)
    kept = { catalog: { classTypes: () => Object.keys(classes), find }, at: performance.now() }
    return kept.catalog
  }
}

/** Only files below the folders that the user named, wherever links may lead. */
function createOpenFile(folders: readonly string[]): ToolHost['openFile'] {
  if (folders.length === 0) return null
  return async (given) => {
    const file = await realpath(path.resolve(folders[0], given)).catch(() => null)
    const allowed = await Promise.all(folders.map((folder) => realpath(folder).catch(() => null)))
    const isInside = (folder: string | null) => folder !== null && file?.startsWith(folder + path.sep)
    if (file === null || !allowed.some(isInside))
      throw new ToolError(
        `there is no file ${JSON.stringify(given)} in the folders that may be read: ${folders.join(', ')}`,
      )
    return { name: path.basename(file), content: await openAsBlob(file) }
  }
}
