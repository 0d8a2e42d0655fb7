/** The whole service as several accounts share it, with the accounts and keys that a test names. */
import type { LimitOverrides } from '../../../src/domain/accounts/limits/tiers.ts'
import { type Answer, type CallOptions, call } from '../clients/call.ts'
import { createFakeEngine, type FakeEngine } from '../engines/fake-engine.ts'
import { waitUntil } from '../wait-until.ts'
import { startTestApp, type TestApp, type TestAppOptions } from './start-app.ts'

export const ADMIN_TOKEN = 'admin-token-of-this-test'

export interface SharedApp extends AsyncDisposable {
  readonly service: TestApp
  readonly url: string
  readonly engine: FakeEngine
  /** A call of the admin API. */
  admin(method: string, path: string, body?: unknown): Promise<Answer>
  /** Waits until a deployment is in this state. */
  untilDeployment(id: string, state: string): Promise<void>
  /** Makes an account with a key and gives back its calls. */
  account(id: string, limits?: LimitOverrides): Promise<Tenant>
}

export interface Tenant {
  readonly id: string
  readonly key: string
  call(path: string, options?: CallOptions): Promise<Answer>
}

export async function startShared(
  settings: Readonly<Record<string, string>> = {},
  options: Omit<TestAppOptions, 'settings'> = {},
): Promise<SharedApp> {
  const engine = createFakeEngine()
  const service = await startTestApp({
    settings: { kind: 'cloud', adminToken: ADMIN_TOKEN, ...settings },
    ...options,
    overrides: { engine, ...options.overrides },
  })
  const { url } = service

  function admin(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    return call(url, `/admin/v1${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  }

  return {
    service,
    url,
    engine,
    admin,
    async untilDeployment(id, state) {
      await waitUntil(async () => (await admin('GET', `/deployments/${id}`)).json.state === state)
    },
    async account(id, limits = {}) {
      const made = await admin('POST', '/accounts', { id, limits: { creditFloorMicros: null, ...limits } })
      if (made.status !== 201) throw new Error(`account ${id}: ${made.text}`)
      const created = await admin('POST', `/accounts/${id}/keys`, {})
      const key = created.json.text as string
      return {
        id,
        key,
        call: (path, given = {}) =>
          call(url, path, { ...given, headers: { authorization: `Bearer ${key}`, ...given.headers } }),
      }
    },
    async [Symbol.asyncDispose]() {
      engine.release()
      await service[Symbol.asyncDispose]()
    },
  }
}
