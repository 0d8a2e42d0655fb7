/** What a joined worker may write of a run whose outputs have to be checked: the service asks, whatever the worker does. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { ADMIN_TOKEN, createWorkerKey } from '../../support/app/join-worker.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { type HeldLease, WorkerClient } from '../../support/clients/worker-client.ts'
import { ALLOW, type Moderator, startModerator } from '../../support/moderator.ts'

const blake3 = await openBlake3()

describe('a run whose outputs are checked', () => {
  let app: TestApp
  let moderator: Moderator
  let worker: WorkerClient
  before(async () => {
    moderator = await startModerator()
    const moderation = await moderator.setting({ scope: 'all', before_outputs: {} })
    const settings = { joins: 'on', adminToken: ADMIN_TOKEN, moderation }
    app = await startTestApp({ settings, overrides: { engines: [] } })
    worker = new WorkerClient(app.url, (await createWorkerKey(app.url)).text)
    assert.equal((await worker.publish()).status, 200)
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await moderator[Symbol.asyncDispose]()
  })

  async function take(): Promise<{ lease: HeldLease; output: object }> {
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: randomUUID() } } } })
    assert.equal((await call(app.url, '/api/v2/jobs', { method: 'POST', body })).status, 201)
    const leaseId = randomUUID()
    const claim = await worker.claim({ lease_id: leaseId, wait_ms: 10_000 })
    assert.equal(claim.json.holds_outputs, true)
    const lease = { jobId: claim.json.job.id as string, leaseId }
    const bytes = Buffer.from(`of ${lease.jobId}`)
    const hash = blake3.hash(bytes)
    const put = await worker.ask('PUT', `/jobs/${lease.jobId}/blobs/${hash}?lease_id=${leaseId}`, bytes)
    const output = {
      ...{ asset_id: randomUUID(), node_id: '1', name: 'a.txt', type: 'text', content_type: 'text/plain' },
      ...{ size_bytes: bytes.length, hash, receipt: put.json.receipt },
    }
    return { lease, output }
  }
  const commit = ({ jobId, leaseId }: HeldLease, change: object) =>
    worker.ask('POST', `/jobs/${jobId}/commits`, { lease_id: leaseId, change })
  const outputsOf = async ({ jobId }: HeldLease) => (await call(app.url, `/api/v2/jobs/${jobId}`)).json.outputs

  test('brings no output before its end, and none with another end than a success', async () => {
    const { lease, output } = await take()
    const early = await commit(lease, { outputs: [output] })
    assert.equal(early.status, 422, early.text)
    const error = { code: 'x', message: 'broke', node_id: null, class_type: null, traceback: null }
    const finish = { status: 'failed', from: ['running'], error, record: null }
    assert.equal((await commit(lease, { outputs: [output], finish })).json.status, 'failed')
    assert.deepEqual([await outputsOf(lease), moderator.asked], [[], []])
  })

  test('is asked about once when its end comes twice at once, and its worker is told what was written', async () => {
    const { lease, output } = await take()
    const asked = moderator.asked.length
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    moderator.decide = async () => {
      await released
      return { decision: 'refuse', message: 'not this' }
    }
    const both = [worker.finish(lease, [output]), worker.finish(lease, [output])]
    release()
    const [one, other] = (await Promise.all(both)).map(({ json }) => json)
    assert.equal(moderator.asked.length, asked + 1)
    const told = [one, other].find(({ outcome }) => outcome === 'committed')
    assert.deepEqual([told.status, told.error.code, told.error.message], ['failed', 'refused_by_policy', 'not this'])
    assert.deepEqual(await outputsOf(lease), [])
  })

  test('hands its outputs out when they are allowed, and a repeated end adds none', async () => {
    const { lease, output } = await take()
    moderator.decide = () => ALLOW
    const first = await worker.finish(lease, [output])
    assert.deepEqual([first.json.status, (await outputsOf(lease)).length], ['succeeded', 1])
    const again = await worker.finish(lease, [{ ...output, asset_id: randomUUID() }])
    assert.deepEqual([again.json, (await outputsOf(lease)).length], [first.json, 1])
  })
})
