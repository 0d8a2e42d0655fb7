/** The keys of workers that join from other machines. The text of a key is shown only in the answer that made it. */
import type { FastifyInstance } from 'fastify'
import type { ApiKey, StoredKey } from '../../../domain/accounts/keys/api-key.ts'
import type { KeyStore } from '../../../domain/accounts/keys/key-store.ts'
import { givesCredentials, poolsOf, type WorkerKeys } from '../../../domain/workers/worker-keys.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH, type AdminKit, idOf } from '../admin-operation.ts'

export interface WorkerKeyParts {
  readonly workerKeys: WorkerKeys
  /** Whether workers may join the running service. */
  readonly takesWorkers: boolean
}

interface WorkerKeyDeps extends WorkerKeyParts {
  readonly kit: AdminKit
}

interface NewWorkerKeyBody {
  readonly name?: string
  readonly pools?: readonly string[]
  readonly credentials?: boolean
  readonly expires_at?: string | null
}

const DEFAULT_POOLS = ['default']

export function createWorkerKey(app: FastifyInstance, { kit, workerKeys, takesWorkers }: WorkerKeyDeps): void {
  app.post(`${ADMIN_PATH}/workers/keys`, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<NewWorkerKeyBody>(request, 'NewWorkerKey')
    const { name = '', pools = DEFAULT_POOLS, credentials = false, expires_at: expires = null } = body
    const through = (key: string): KeyStore => {
      const details = { key, name, pools, credentials, expires_at: expires }
      return kit.audited(request, { action: 'worker_key.create', subject: key, details }).apiKeys
    }
    // The id of the key is known when it is stored, and belongs into its audit line.
    const store = { ...through(''), insert: (key: StoredKey) => through(key.id).insert(key) }
    const expiresAt = expires === null ? null : new Date(expires)
    const { key, text } = await workerKeys.create({ name, pools, hasCredentials: credentials, expiresAt }, store)
    return sendJson(reply, 201, { ...toWorkerKeyView(key), text, takes_workers: takesWorkers })
  })
}

export function listWorkerKeys(app: FastifyInstance, { workerKeys }: WorkerKeyDeps): void {
  app.get(`${ADMIN_PATH}/workers/keys`, needs('operator'), async (_request, reply) => {
    const keys = await workerKeys.list()
    return sendJson(reply, 200, { keys: keys.map(toWorkerKeyView) })
  })
}

export function revokeWorkerKey(app: FastifyInstance, { kit, workerKeys }: WorkerKeyDeps): void {
  app.post(`${ADMIN_PATH}/workers/keys/:id/revoke`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'worker_key.revoke', subject: id, details: {} })
    return sendJson(reply, 200, toWorkerKeyView(await workerKeys.revoke(id, through.apiKeys)))
  })
}

function toWorkerKeyView({ id, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt }: ApiKey) {
  return {
    ...{ id, name },
    pools: poolsOf(scopes),
    credentials: givesCredentials(scopes),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    revoked_at: revokedAt?.toISOString() ?? null,
    last_used_at: lastUsedAt?.toISOString() ?? null,
  }
}
