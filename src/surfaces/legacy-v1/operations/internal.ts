/** Routes that ComfyUI's editor uses: the lines that the account's latest run printed, and the names of its files. */
import type { FastifyRequest } from 'fastify'
import { readFolder, toBaseName } from '../files/file-names.ts'
import { type Api, type OperationDeps, paramOf, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'
import { toClientId } from '../prompts/job-clients.ts'
import type { LogEntry } from '../ws/log-news.ts'
import { TERMINAL_SIZE } from '../ws/messages.ts'

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
