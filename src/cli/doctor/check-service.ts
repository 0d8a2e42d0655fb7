/** Checks of one configured service: its data folder, its store, its address, its safety, and whether it runs. */
import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { inspectStore } from '../../compose/storage/migrate-store.ts'
import type { SqliteConfig } from '../../config/blocks/store-config.ts'
import type { Config, LoadedConfig } from '../../config/config.ts'
import { type Finding, fail, ok, toReason, warn } from './check.ts'
import { checkDatabase } from './check-database.ts'

const GIB = 2 ** 30
const LOW_SPACE = 5 * GIB
const NO_SPACE = GIB / 4

/** The folder itself, or the nearest existing folder above it, in which it would be created. */
function nearestExisting(directory: string): string {
  const stat = statSync(directory, { throwIfNoEntry: false })
  return stat !== undefined || directory === path.dirname(directory)
    ? directory
    : nearestExisting(path.dirname(directory))
}

export function checkDataFolder({ dataDirectory }: Config): Finding {
  const what = 'data folder'
  const folder = nearestExisting(dataDirectory)
  try {
    if (!statSync(folder).isDirectory()) return fail(what, `${folder} is a file`, 'choose another with --data-dir')
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    return fail(
      what,
      `${folder} cannot be written: ${toReason(error)}`,
      'change its owner, or choose another with --data-dir',
    )
  }
  if (folder !== dataDirectory) return ok(what, `${dataDirectory} will be created`)
  const mode = statSync(folder).mode & 0o777
  if ((mode & 0o077) !== 0) {
    return warn(
      what,
      `${folder} is open to other users (mode ${mode.toString(8)})`,
      `chmod 700 ${folder}, or start the service, which does so`,
    )
  }
  return ok(what, dataDirectory)
}

export function checkSpace({ dataDirectory }: Config): Finding {
  const { bavail, bsize } = statfsSync(nearestExisting(dataDirectory))
  const free = bavail * bsize
  const says = `${(free / GIB).toFixed(1)} GiB free`
  if (free < NO_SPACE) return fail('disk', says, 'free some space: uploads and outputs will be refused')
  if (free < LOW_SPACE) return warn('disk', says, 'free some space, or shorten `retention`')
  return ok('disk', says)
}

export async function checkStore({ config: { store, bus }, secrets }: LoadedConfig): Promise<readonly Finding[]> {
  return store.kind === 'postgres' ? checkDatabase(store, { secrets, bus }) : [checkFolderStore(store)]
}

function checkFolderStore(store: SqliteConfig): Finding {
  const condition = inspectStore(store)
  if (condition.state === 'absent') return ok('store', 'no database yet; the first start creates it')
  if (condition.state === 'unusable') return fail('store', condition.message, 'see docs/operations.md')
  const { applied, pending } = condition.migrations
  const use = condition.inUse ? 'in use by a running process' : 'not in use'
  if (pending.length === 0) return ok('store', `schema ${applied.length}, ${use}`)
  return warn(
    'store',
    `${pending.length} migrations pending, ${use}`,
    'back the folder up, then start the service or run `atelier migrate`',
  )
}

/** Empty for a service that everybody may use: the configuration itself warns of that. */
export function checkAccess({ config, secrets }: LoadedConfig): readonly Finding[] {
  const byToken = secrets.token === null ? 'no token' : 'a token'
  const access = config.kind === 'local' ? byToken : 'keys of accounts'
  if (config.http.isLoopback) return [ok('access', `this machine only, ${access}`)]
  if (config.kind === 'local' && secrets.token === null) return []
  return [ok('access', `${config.http.host}, ${access}; put TLS in front of it`)]
}

const HEALTH_WITHIN_MS = 3000

/** true: the health answer of a Jobs API server; false: something else answers; null: no answer. */
async function askHealth(baseUrl: string): Promise<boolean | null> {
  try {
    const response = await fetch(`${baseUrl}/api/v2/health`, { signal: AbortSignal.timeout(HEALTH_WITHIN_MS) })
    const body: unknown = await response.json().catch(() => null)
    return response.ok && typeof body === 'object' && body !== null && 'status' in body && body.status === 'healthy'
  } catch {
    return null
  }
}

export async function checkAddress({ http }: Config): Promise<Finding> {
  const what = 'address'
  const failure = http.port === 0 ? null : await tryToListen(http.host, http.port)
  const spelled = http.host.includes(':') ? `[${http.host}]:${http.port}` : `${http.host}:${http.port}`
  if (failure === null) return ok(what, `${spelled} is free; no server runs here`)
  if (failure.code !== 'EADDRINUSE')
    return fail(what, `${spelled}: ${failure.message}`, 'choose another --host or --port')
  const base = `http://${spelled.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')}${http.mountPrefix}`
  if ((await askHealth(base)) === true) return ok(what, `a server runs at ${base} and is healthy`)
  return fail(what, `${spelled} is taken by something else`, 'stop it, or choose another --port')
}

function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

/** The server that `atelier run` would talk to, when one was named. */
export async function checkRemote(baseUrl: string): Promise<Finding> {
  const health = await askHealth(baseUrl.replace(/\/+$/, ''))
  if (health === true) return ok('server', `${baseUrl} is healthy`)
  if (health === false)
    return fail('server', `${baseUrl} answers, but not as a server of the Jobs API v2`, 'check ATELIER_BASE_URL')
  return fail('server', `${baseUrl} does not answer`, 'start it, or check ATELIER_BASE_URL')
}
