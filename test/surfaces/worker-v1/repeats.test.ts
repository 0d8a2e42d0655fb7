/** What a worker asks twice, because the first answer did not reach it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { toEngineId, toLeaseId } from '../../../src/domain/workers/held-claims.ts'
import { ADMIN_TOKEN, createWorkerKey } from '../../support/app/join-worker.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { WorkerClient } from '../../support/clients/worker-client.ts'

const LEASE_MS = 30_000
const ERROR = { code: 'worker_lost', message: 'lost', nodeId: null, classType: null, traceback: null }
const blake3 = await openBlake3()

describe('asked again', () => {
  let app: TestApp
  let worker: WorkerClient
  let keyId: string

  before(async () => {
    app = await startTestApp({ settings: { joins: 'on', adminToken: ADMIN_TOKEN }, overrides: { engines: [] } })
    const key = await createWorkerKey(app.url)
    keyId = key.id
    worker = new WorkerClient(app.url, key.text)
    assert.equal((await worker.publish()).status, 200)
  })
  after(() => app[Symbol.asyncDispose]())

  async function submit(): Promise<string> {
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } } })
    const { status, json, text } = await call(app.url, '/api/v2/jobs', { method: 'POST', body })
    assert.equal(status, 201, text)
    return json.id
  }

  const claim = (leaseId: string) => worker.claim({ lease_id: leaseId, wait_ms: 10_000 })

  test('a claim finds its job, which is held for as long as one that was just taken', async () => {
    await submit()
    const leaseId = randomUUID()
    const first = await claim(leaseId)
    const between = Date.now()
    while (Date.now() <= between + 1) await turn()
    const second = await claim(leaseId)
    assert.deepEqual([first.status, second.status, second.json.job.id], [200, 200, first.json.job.id])
    const lapsedBefore = new Date(between + LEASE_MS)
    const reaped = await app.app.store.jobs.reap({ now: new Date(), lapsedBefore, maxAttempts: 3, error: ERROR })
    assert.deepEqual(reaped, [])
    await worker.finish({ jobId: first.json.job.id, leaseId })
  })

  test('a lease that got another job from another process holds that one', async () => {
    const { jobs } = app.app.store
    const leaseId = randomUUID()
    const stored = toLeaseId({ keyId }, leaseId)
    const lost = await submit()
    assert.equal((await claim(leaseId)).json.job.id, lost)
    // The answer does not reach the worker, and the store loses the claim in a fail-over.
    const now = new Date()
    await jobs.release([{ jobId: lost, leaseId: stored }], now)
    assert.equal((await call(app.url, `/api/v2/jobs/${lost}/cancel`, { method: 'POST' })).status, 200)
    const jobId = await submit()
    const leaseUntil = new Date(now.getTime() + LEASE_MS)
    const engines = [{ engineId: toEngineId({ keyId }, 'gpu'), lanes: null }]
    const taken = { pool: 'default', workerId: 'w', leaseId: stored, leaseUntil, now, engines, maxOvertakes: 0 }
    assert.equal((await jobs.claim(taken))?.job.id, jobId)
    const bytes = Buffer.from('of the second job')
    const path = (id: string) => `/jobs/${id}/blobs/${blake3.hash(bytes)}?lease_id=${leaseId}`
    assert.equal((await worker.ask('PUT', path(jobId), bytes)).status, 200)
    assert.equal((await worker.ask('PUT', path(lost), bytes)).status, 404, 'it does not hold the first one any more')
    assert.equal((await worker.finish({ jobId, leaseId })).json.status, 'succeeded')
  })

  test('a claim tells what an earlier attempt had made, as the first answer did', async () => {
    const jobId = await submit()
    const [one, two] = [randomUUID(), randomUUID()]
    assert.equal((await claim(one)).json.job.id, jobId)
    const bytes = Buffer.from('an output')
    const hash = blake3.hash(bytes)
    const put = await worker.ask('PUT', `/jobs/${jobId}/blobs/${hash}?lease_id=${one}`, bytes)
    const output = {
      ...{ asset_id: randomUUID(), node_id: '1', name: 'a.txt', type: 'text', content_type: 'text/plain' },
      ...{ size_bytes: bytes.length, hash, receipt: put.json.receipt },
    }
    await worker.ask('POST', `/jobs/${jobId}/commits`, { lease_id: one, change: { outputs: [output] } })
    await worker.ask('POST', '/release', { leases: [{ job_id: jobId, lease_id: one, is_spent: true }] })
    const answers = [await claim(two), await claim(two)]
    assert.deepEqual(
      answers.map(({ json }) => json.earlier_outputs.length),
      [1, 1],
    )
    assert.deepEqual(answers[1]?.json.earlier_outputs, answers[0]?.json.earlier_outputs)
    await worker.finish({ jobId, leaseId: two })
  })

  test('an end is answered as the first one was, and another one is refused', async () => {
    const jobId = await submit()
    const lease = { jobId, leaseId: randomUUID() }
    await claim(lease.leaseId)
    const first = await worker.finish(lease)
    assert.deepEqual([first.json.outcome, first.json.status], ['committed', 'succeeded'])
    assert.deepEqual((await worker.finish(lease)).json, first.json)
    const finish = { status: 'canceled', from: ['canceling'], error: null, record: null }
    const other = await worker.ask('POST', `/jobs/${jobId}/commits`, { lease_id: lease.leaseId, change: { finish } })
    assert.deepEqual(other.json, { outcome: 'lost' })
  })

  test('an end brings when each node ran and which lines it printed', async () => {
    const jobId = await submit()
    const leaseId = randomUUID()
    await claim(leaseId)
    const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1, 0, 0, 5)]
    const span = { node_id: '1', started_at_ms: from, ended_at_ms: to, step: 3, steps: 3 }
    const record = {
      ...{ started_at_ms: from, ended_at_ms: to, cached: { node_ids: [], at_ms: from }, nodes: [], executed: ['1'] },
      ...{ stopped_at: null, failure: null, spans: [span] },
    }
    const marks = { total: 2, marks: [{ line: 1, at_ms: to, node_id: '1' }] }
    const log = { text: 'one\ntwo\n', truncated: false, complete: true, marks }
    const finish = { status: 'succeeded', from: ['running'], error: null, record }
    const commit = (change: object) =>
      worker.ask('POST', `/jobs/${jobId}/commits`, { lease_id: leaseId, change: { finish, ...change } })
    const beyond = { ...marks, marks: [{ line: 1, at_ms: 8.65e15, node_id: '1' }] }
    assert.equal((await commit({ log: { ...log, marks: beyond } })).status, 422, 'no time is that late')
    assert.equal((await commit({ log })).json.outcome, 'committed')
    const [node] = (await call(app.url, `/console/v1/jobs/${jobId}/nodes`)).json.nodes
    assert.deepEqual(
      [node.state, node.started_at, node.ended_at, node.steps],
      ['done', new Date(from).toISOString(), new Date(to).toISOString(), 3],
    )
    const { lines } = (await call(app.url, `/console/v1/jobs/${jobId}/logs`)).json
    assert.deepEqual(
      lines.map(({ text, node: printedBy, at }: { text: string; node: string | null; at: string | null }) => [
        ...[text, printedBy, at],
      ]),
      [
        ['one', null, null],
        ['two', '1', new Date(to).toISOString()],
      ],
    )
  })

  test('pieces that are not as long together as what they are to be are refused unread', async () => {
    const jobId = await submit()
    const lease = { jobId, leaseId: randomUUID() }
    await claim(lease.leaseId)
    const bytes = Buffer.from('one piece')
    const hash = blake3.hash(bytes)
    const { json: piece } = await worker.ask('PUT', `/jobs/${jobId}/blobs/${hash}?lease_id=${lease.leaseId}`, bytes)
    const whole = { lease_id: lease.leaseId, hash: blake3.hash(Buffer.concat([bytes, bytes])) }
    const join = (sizeBytes: number) =>
      worker.ask('POST', `/jobs/${jobId}/blobs`, { ...whole, size_bytes: sizeBytes, pieces: [piece, piece] })
    assert.equal((await join(bytes.length)).status, 422)
    assert.equal((await join(2 * bytes.length)).json.state, 'stored')
    await worker.finish(lease)
  })
})
