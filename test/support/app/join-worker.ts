/** A worker in this process that joins a service over HTTP, and the keys for it. */
import { type Log, silentLog } from '../../../lib/log.ts'
import type { FleetOverrides } from '../../../src/compose/engines/open-engines.ts'
import { type JoinedWorker, startJoinedWorker } from '../../../src/compose/joined-worker.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { Secret } from '../../../src/config/secrets.ts'
import { call } from '../clients/call.ts'
import { type ConfigPatch, patchConfig } from './patch-config.ts'

export const ADMIN_TOKEN = 'admin-token-of-tests'

interface Joined {
  readonly url: string
  readonly dataDir: string
}

interface JoinOptions {
  readonly settings?: Readonly<Record<string, string>>
  readonly patch?: ConfigPatch
  readonly overrides?: FleetOverrides
  readonly urls?: readonly string[]
  readonly key?: string
  readonly versions?: readonly number[]
  readonly log?: Log
  /** It makes releases and serves them. */
  readonly builds?: boolean
}

export async function createWorkerKey(url: string, body: object = {}): Promise<{ id: string; text: string }> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const made = await call(url, '/admin/v1/workers/keys', { method: 'POST', headers, body: JSON.stringify(body) })
  if (made.status !== 201) throw new Error(`refused: ${made.text}`)
  return made.json
}

export async function revokeWorkerKey(url: string, id: string): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const { status, text } = await call(url, `/admin/v1/workers/keys/${id}/revoke`, { method: 'POST', headers })
  if (status !== 200) throw new Error(`refused: ${text}`)
}

export async function joinTestWorker({ url, dataDir }: Joined, options: JoinOptions = {}): Promise<JoinedWorker> {
  const { settings = {}, overrides, urls = [url], versions, log = silentLog, builds = false } = options
  const { adminToken: _, joins: __, ...own } = settings
  const { config, secrets } = loadConfig({ flags: { dataDir, ...own }, env: {}, cwd: dataDir })
  const key = new Secret(options.key ?? (await createWorkerKey(url)).text)
  return startJoinedWorker(
    patchConfig(config, options.patch),
    { urls },
    { key, log, version: 'test', overrides, ...(versions && { versions }), ...(builds && { builds: { secrets } }) },
  )
}
