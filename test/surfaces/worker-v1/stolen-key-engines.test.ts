/** What whoever stole the key of a worker can do with engines that it makes up: nothing beyond its pools, and not without end. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { INFO, WorkerClient } from '../../support/clients/worker-client.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SAVE = INFO['FakeSave'] as NodeDefinition
/** A class of the service's own engine, as it must not be described for everybody. */
const TWISTED = { ...SAVE, input: { required: { ransom: ['INT', {}] as const } } }

let app: SharedApp
let tenant: Tenant

async function keyFor(pools: readonly string[]): Promise<WorkerClient & { readonly id: string }> {
  const made = await app.admin('POST', '/workers/keys', { pools })
  assert.equal(made.status, 201, made.text)
  return Object.assign(new WorkerClient(app.url, made.json.text), { id: made.json.id as string })
}

async function submit(classType: string): Promise<number> {
  const workflow = { '1': { class_type: classType, inputs: {} } }
  return (await tenant.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })).status
}

async function engineIds(): Promise<readonly string[]> {
  return (await app.admin('GET', '/engines')).json.engines.map(({ id }: { id: string }) => id)
}

describe('engines of a stolen key', () => {
  before(async () => {
    app = await startShared({ joins: 'on' })
    tenant = await app.account('tenant', { concurrentJobs: 1000 })
  })
  after(async () => app[Symbol.asyncDispose]())

  test('describe no class of the service itself, and add to their own pools only', async () => {
    const inside = await keyFor(['default'])
    const outside = await keyFor(['elsewhere'])
    assert.equal((await inside.publishClasses({ FakeSave: TWISTED, OfInside: SAVE })).status, 200)
    assert.equal((await outside.publishClasses({ FakeSave: TWISTED, OfOutside: SAVE })).status, 200)
    assert.equal((await engineIds()).length, 3)
    assert.equal(await submit('FakeSave'), 201, 'as its own engine has it')
    assert.equal(await submit('OfInside'), 201)
    assert.equal(await submit('OfOutside'), 422)
    // One that has not said what it can run makes nothing possible in other pools either.
    assert.equal((await outside.publishClasses({}, ['silent'], { catalog_hash: null })).status, 200)
    assert.equal(await submit('OfNobody'), 422)
  })

  test('count for nothing when it is revoked', async () => {
    const worker = await keyFor(['default'])
    assert.equal((await worker.publishClasses({ OfRevoked: SAVE }, ['gone'], { is_shared: true })).status, 200)
    assert.equal(await submit('OfRevoked'), 201)
    assert.equal((await app.admin('POST', `/workers/keys/${worker.id}/revoke`)).status, 200)
    await waitUntil(async () => !(await engineIds()).some((id) => id.endsWith(worker.id)))
    assert.equal(await submit('OfRevoked'), 422)
  })

  test('are bounded, and those that nobody holds give way to new ones', async () => {
    const worker = await keyFor(['default'])
    const named = (from: number, count: number) => Array.from({ length: count }, (_, index) => `e${from + index}`)
    assert.equal((await worker.publishClasses(INFO, named(0, 200))).status, 200)
    const more = await worker.publishClasses(INFO, named(200, 57))
    assert.deepEqual([more.status, more.json.error.type], [403, 'forbidden'])
    assert.equal((await worker.publishClasses(INFO, named(200, 56))).status, 200)
    // At once as well as one after the other.
    const others = await Promise.all([300, 400, 500].map((from) => worker.publishClasses(INFO, named(from, 1))))
    assert.deepEqual(
      others.map(({ status }) => status),
      [403, 403, 403],
    )
    assert.equal((await worker.ask('DELETE', '/engines')).status, 204)
    assert.equal((await worker.publishClasses(INFO, named(600, 256))).status, 200)
    assert.equal((await worker.ask('DELETE', '/engines')).status, 204)
  })

  test('bring no description that could not be read, or has too much in it', async () => {
    const worker = await keyFor(['default'])
    const tries: [number, object][] = [
      [400, { Odd: 5 }],
      [400, { Odd: { ...SAVE, input: null } }],
      [400, { Odd: { ...SAVE, input: { required: { a: null } } } }],
      [400, { Odd: { ...SAVE, output: null } }],
      [400, { Odd: SAVE, $facts: { Odd: { selfChecked: 1 } } }],
      [413, Object.fromEntries(Array.from({ length: 20_001 }, (_, index) => [`C${index}`, {}]))],
    ]
    for (const [status, info] of tries) {
      const answer = await worker.publishClasses(info as typeof INFO)
      assert.equal(answer.status, status, `${answer.text} ${JSON.stringify(info).slice(0, 80)}`)
    }
    const deep = `${'[['.repeat(40)}${']]'.repeat(40)}`
    const bytes = Buffer.from(`{"Odd":${deep}}`)
    assert.equal((await worker.ask('PUT', `/catalogs/${hash('sha256', bytes, 'base64url')}`, bytes)).status, 413)
    const large = Buffer.alloc(32 * 1024 * 1024 + 1, ' ')
    assert.equal((await worker.ask('PUT', `/catalogs/${'a'.repeat(43)}`, large)).status, 413)
  })
})
