/** Processes of one service on one database, each in the role that a test gives it, started as an operator starts them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type SpawnedServer, spawnServer } from '../app/spawn-server.ts'
import { type Answer, type CallOptions, call } from '../clients/call.ts'
import { createTestDatabase } from '../postgres/test-database.ts'
import { waitUntil } from '../wait-until.ts'

export const ADMIN_TOKEN = 'admin-token-of-this-test'

export interface RoleProcesses extends AsyncDisposable {
  readonly databaseUrl: string
  api(flags?: readonly string[]): Promise<SpawnedServer>
  /** Requests and engines in one. */
  all(flags?: readonly string[]): Promise<SpawnedServer>
  /** `atelier work`; without flags about engines it has the built-in one. */
  worker(flags?: readonly string[]): Promise<SpawnedServer>
}

/** `shared`: flags of every process; `variables`: further ones of their environment. */
export async function openRoleProcesses(
  shared: readonly string[] = [],
  variables: Readonly<Record<string, string>> = {},
): Promise<RoleProcesses> {
  await using opening = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-roles-'))
  opening.defer(() => rmSync(folder, { recursive: true, force: true }))
  const { url } = opening.use(await createTestDatabase())
  const own = { ATELIER_DATABASE: url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
  const env = { ...own, ...variables }
  const common = ['--data-dir', path.join(folder, 'data'), ...shared]
  const processes = opening.use(new AsyncDisposableStack())
  const opened = opening.move()
  return {
    databaseUrl: url,
    api: async (flags = []) => processes.use(await spawnServer(['--role', 'api', ...common, ...flags], env)),
    all: async (flags = []) => processes.use(await spawnServer([...common, ...flags], env)),
    worker: async (flags = ['--embedded', 'on', '--workers', '2']) =>
      processes.use(await spawnServer([...common, ...flags], env, { command: 'work' })),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

export function askAdmin({ url }: Pick<SpawnedServer, 'url'>, at: string, options: CallOptions = {}): Promise<Answer> {
  return call(url, `/admin/v1${at}`, { ...options, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
}

export async function submitJob({ url }: Pick<SpawnedServer, 'url'>, workflow: object): Promise<string> {
  const answer = await call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  if (answer.status !== 201) throw new Error(`refused: ${answer.text}`)
  return answer.json.id
}

/** The job, once it is in one of these states. */
export function untilStatus({ url }: Pick<SpawnedServer, 'url'>, id: string, ...statuses: readonly string[]) {
  let last = ''
  return waitUntil(
    async () => {
      const { json, text } = await call(url, `/api/v2/jobs/${id}`)
      last = text
      return statuses.includes(json?.status) ? json : null
    },
    () => `${statuses.join(' or ')}: ${last}`,
  )
}
