/** What a client may see of a server's log: the lines that the account's own latest run printed, and nothing of the service. */
import type { FastifyRequest } from 'fastify'
import { type Api, type OperationDeps, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readLooseJson } from '../lenient-body.ts'

interface LogEntry {
  readonly t: string
  readonly m: string
}

const SIZE = { cols: 80, rows: 24 }

export function logs(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  async function read(request: FastifyRequest): Promise<LogEntry[]> {
    const accountId = accountOf(request)
    const [newest] = await jobs.records.history(accountId, { maxItems: 1, offset: null })
    const log = newest === undefined ? null : await jobs.reader.log(accountId, newest.job.id)
    if (log === null) return []
    const t = log.capturedAt.toISOString()
    return log.text.split('\n').flatMap((line) => (line === '' ? [] : [{ t, m: `${line}\n` }]))
  }

  api.both('GET', '/internal/logs', async (request, reply) => {
    const entries = await read(request)
    return sendJsonText(reply, JSON.stringify(entries.map(({ t, m }) => `${t} - ${m}`).join('')))
  })
  api.both('GET', '/internal/logs/raw', async (request, reply) =>
    sendJson(reply, { entries: await read(request), size: SIZE }),
  )
  // Lines are not sent over the socket; a client that asks for them hears nothing, as from a server that prints nothing.
  api.both('PATCH', '/internal/logs/subscribe', async (request, reply) => {
    await readLooseJson(request, limits.maxBodyBytes)
    return sendJson(reply, {})
  })
}
