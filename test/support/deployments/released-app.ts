/** A service with releases, and an account's calls of its deployments. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestAppOptions } from '../app/start-app.ts'
import { type SharedApp, startShared, type Tenant } from '../app/start-shared.ts'
import type { Answer } from '../clients/call.ts'
import { waitUntil } from '../wait-until.ts'
import { createFakeReleases, type FakeReleases } from './fake-releases.ts'

export const CPU = { gpuClass: 'cpu', region: 'local' } as const

export interface ReleasedApp extends AsyncDisposable {
  readonly app: SharedApp
  readonly releases: FakeReleases
}

export async function startReleased(
  settings: Readonly<Record<string, string>> = {},
  targets?: FakeReleases['here']['targets'],
  overrides: TestAppOptions['overrides'] = {},
): Promise<ReleasedApp> {
  const folder = await mkdtemp(join(tmpdir(), 'released-'))
  const releases = createFakeReleases(folder, (accountId) => accountId !== 'stranger', targets)
  const app = await startShared(
    { releaseEngines: '4', ...settings },
    { overrides: { ...overrides, releases: releases.here } },
  )
  return {
    app,
    releases,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export interface Deployed {
  readonly id: string
  get(): Promise<Answer['json']>
  /** Waits until the record is so. */
  until(isSo: (record: Answer['json']) => boolean): Promise<Answer['json']>
  call(method: string, path?: string, body?: object): Promise<Answer>
  submit(workflow: object): Promise<Answer>
}

export function deployedBy(tenant: Tenant, id: string): Deployed {
  const path = `/deploy/v1/deployments/${id}`
  const call = (method: string, below = '', body?: object) =>
    tenant.call(path + below, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const get = async () => (await call('GET')).json
  return {
    id,
    get,
    call,
    async until(isSo) {
      let record: Answer['json'] = null
      await waitUntil(async () => {
        record = await get()
        return isSo(record)
      })
      return record
    },
    submit: (workflow) =>
      tenant.call(`/deployment/${id}/api/v2/jobs`, { method: 'POST', body: JSON.stringify({ workflow }) }),
  }
}

export async function deploy(tenant: Tenant, releaseId: string, { min = 1, max = 1 } = {}): Promise<Deployed> {
  const answer = await tenant.call('/deploy/v1/deployments', {
    method: 'POST',
    body: JSON.stringify({ releaseId, computeConfig: { ...CPU, min, max } }),
  })
  if (answer.status !== 201) throw new Error(answer.text)
  return deployedBy(tenant, answer.json.id as string)
}

/** A job that says which one it is, in what the release that runs it writes down. */
export function saying(text: string) {
  return {
    '1': { class_type: 'DemoPrint', inputs: { text } },
    '2': { class_type: 'DemoStamp', inputs: { filename_prefix: text } },
  }
}
