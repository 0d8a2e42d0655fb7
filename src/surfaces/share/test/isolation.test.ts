/** Runs of another link look like runs that never were, and a link that was revoked like one that was never made. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before } from 'node:test'
import { testIsolation } from '../../../../test/isolation/run-matrix.ts'
import type { IsolationCase, IsolationSurface } from '../../../../test/isolation/surface.ts'
import { openWorld, type World } from '../../../../test/isolation/world.ts'
import type { Tenant } from '../../../../test/support/app/start-shared.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'

const ENDPOINTS = '/api/v2/endpoints'
const FILE = { '1': { class_type: 'FakeSave', inputs: { text: 'theirs' } } }
const nobodys = () => randomBytes(32).toString('base64url')

async function share(tenant: Tenant): Promise<{ readonly id: string; readonly path: string }> {
  const expires = new Date(Date.now() + 3_600_000).toISOString()
  const body = JSON.stringify({ runs: 5, expires_at: expires })
  const { status, json } = await tenant.call(`${ENDPOINTS}/shared/shares`, { method: 'POST', body })
  assert.equal(status, 201)
  return { id: json.id, path: new URL(json.url).pathname }
}

const surface: IsolationSurface = {
  name: 'share',
  spec: 'spec/share.openapi.json',
  harmless: ['getShareOpenapi'],
  lists: [],
  async prepare({ caller, other }) {
    for (const tenant of [caller, other])
      await tenant.call(ENDPOINTS, { method: 'POST', body: JSON.stringify({ name: 'shared', file: FILE }) })
    const [mine, theirs, revoked] = [await share(caller), await share(other), await share(other)]
    const began = await other.call(`${theirs.path}/runs`, { method: 'POST', body: '{"inputs":{}}' })
    assert.equal(began.status, 201, began.text)
    await other.call(`${ENDPOINTS}/shared/shares/${revoked.id}`, { method: 'DELETE' })
    const { run } = began.json
    // What it looks like must not depend on how far it is.
    await waitUntil(async () => (await other.call(`${theirs.path}/runs/${run}`)).json.status === 'succeeded')
    const ofRuns: [operation: string, method: string, rest: string][] = [
      ['getSharedRun', 'GET', ''],
      ['cancelSharedRun', 'POST', '/cancel'],
      ['getSharedRunEvents', 'GET', '/events'],
      ['getSharedOutput', 'GET', '/outputs/0'],
      ['getSharedInput', 'GET', '/inputs/photo'],
    ]
    const runs = ofRuns.map(
      ([operation, method, rest]): IsolationCase => ({
        operation,
        title: `${operation} of a run of another link`,
        foreign: { method, path: `${mine.path}/runs/${run}${rest}` },
        unknown: { method, path: `${mine.path}/runs/${nobodys()}${rest}` },
      }),
    )
    const links = [
      ['getSharedEndpoint', 'GET', 'endpoint'],
      ['startSharedRun', 'POST', 'runs'],
    ].map(
      ([operation, method, rest]): IsolationCase => ({
        operation,
        title: `${operation} of a revoked link`,
        foreign: { method, path: `${revoked.path}/${rest}` },
        unknown: { method, path: `/share/${nobodys()}/${rest}` },
      }),
    )
    return { cases: [...runs, ...links], owned: [`${theirs.path}/runs/${run}`, `${ENDPOINTS}/shared/shares`] }
  },
}

let world: World
before(async () => {
  world = await openWorld()
})
after(() => world[Symbol.asyncDispose]())

testIsolation(surface, () => world)
