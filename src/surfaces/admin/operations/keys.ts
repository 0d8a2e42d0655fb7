/** The keys of accounts and of joined workers. The text of a key is shown only in the answer that made it. */
import type { FastifyInstance } from 'fastify'
import type { Accounts } from '../../../domain/accounts/accounts.ts'
import type { ApiKey, StoredKey } from '../../../domain/accounts/keys/api-key.ts'
import type { ApiKeys } from '../../../domain/accounts/keys/api-keys.ts'
import type { KeyStore } from '../../../domain/accounts/keys/key-store.ts'
import { givesBuilds, givesCredentials, poolsOf, type WorkerKeys } from '../../../domain/workers/worker-keys.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'
import { mustFindAccount, toKeyView } from './accounts.ts'

interface KeyOperationDeps {
  readonly kit: AdminKit
  readonly accounts: Pick<Accounts, 'find'>
  readonly apiKeys: ApiKeys
}

interface NewKeyBody {
  readonly name?: string
  readonly scopes?: readonly string[] | null
  readonly endpoints?: readonly string[] | null
  readonly expires_at?: string | null
}

export function createKey(app: FastifyInstance, { kit, apiKeys }: KeyOperationDeps): void {
  app.post(`${ADMIN_PATH}/accounts/:id/keys`, needs('operator'), async (request, reply) => {
    const accountId = idOf(request)
    const body = await kit.readBody<NewKeyBody>(request, 'NewKey')
    const { name = '', scopes = null, endpoints = null, expires_at: expires = null } = body
    const expiresAt = expires === null ? null : new Date(expires)
    const through = (key: string): KeyStore => {
      const details = { key, name, scopes, endpoints, expires_at: expires }
      return kit.audited(request, { action: 'key.create', subject: accountId, details }).apiKeys
    }
    // The id of the key is known when it is stored, and belongs into its audit line.
    const store = { ...through(''), insert: (key: StoredKey) => through(key.id).insert(key) }
    const { key, text } = await apiKeys.create({ accountId, name, scopes, endpoints, expiresAt }, store)
    return sendJson(reply, 201, { ...toKeyView(key), text })
  })
}

export function listKeys(app: FastifyInstance, { accounts, apiKeys }: KeyOperationDeps): void {
  app.get(`${ADMIN_PATH}/accounts/:id/keys`, needs('operator'), async (request, reply) => {
    const keys = await apiKeys.list(mustFindAccount(accounts, idOf(request)).id)
    return sendJson(reply, 200, { keys: keys.map(toKeyView) })
  })
}

export function rotateKey(app: FastifyInstance, { kit, apiKeys }: KeyOperationDeps): void {
  app.post(`${ADMIN_PATH}/keys/:id/rotate`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const { overlap_seconds: seconds = 0 } = await kit.readBody<{ overlap_seconds?: number }>(request, 'KeyRotation')
    const through = kit.audited(request, { action: 'key.rotate', subject: id, details: { overlap_seconds: seconds } })
    const { key, text } = await apiKeys.rotate(id, { overlapMs: seconds * 1000 }, through.apiKeys)
    return sendJson(reply, 200, { ...toKeyView(key), text })
  })
}

export function revokeKey(app: FastifyInstance, { kit, apiKeys }: KeyOperationDeps): void {
  app.post(`${ADMIN_PATH}/keys/:id/revoke`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'key.revoke', subject: id, details: {} })
    return sendJson(reply, 200, toKeyView(await apiKeys.revoke(id, through.apiKeys)))
  })
}

/** The keys of workers that join from other machines. The text of a key is shown only in the answer that made it. */
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
  readonly builds?: boolean
  readonly expires_at?: string | null
}

const DEFAULT_POOLS = ['default']

export function createWorkerKey(app: FastifyInstance, { kit, workerKeys, takesWorkers }: WorkerKeyDeps): void {
  app.post(`${ADMIN_PATH}/workers/keys`, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<NewWorkerKeyBody>(request, 'NewWorkerKey')
    const { name = '', pools = DEFAULT_POOLS, credentials = false, builds = false, expires_at: expires = null } = body
    const through = (key: string): KeyStore => {
      const details = { key, name, pools, credentials, builds, expires_at: expires }
      return kit.audited(request, { action: 'worker_key.create', subject: key, details }).apiKeys
    }
    // The id of the key is known when it is stored, and belongs into its audit line.
    const store = { ...through(''), insert: (key: StoredKey) => through(key.id).insert(key) }
    const expiresAt = expires === null ? null : new Date(expires)
    const rights = { hasCredentials: credentials, hasBuilds: builds }
    const { key, text } = await workerKeys.create({ name, pools, ...rights, expiresAt }, store)
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
    builds: givesBuilds(scopes),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    revoked_at: revokedAt?.toISOString() ?? null,
    last_used_at: lastUsedAt?.toISOString() ?? null,
  }
}
