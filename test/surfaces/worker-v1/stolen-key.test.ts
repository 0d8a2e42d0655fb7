/** Whoever stole the key of a worker can take jobs of its pools and finish them, and nothing else. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { readOperations } from '../../isolation/contract.ts'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { type HeldLease, WorkerClient } from '../../support/clients/worker-client.ts'

const blake3 = await openBlake3()
const SPECS = ['jobs-v2', 'router', 'legacy-v1', 'admin']
const WORKFLOW = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }

let app: SharedApp
let tenant: Tenant
let other: Tenant
let worker: WorkerClient
let stranger: WorkerClient
let elsewhere: WorkerClient

async function keyFor(pools: readonly string[]): Promise<WorkerClient> {
  const made = await app.admin('POST', '/workers/keys', { pools })
  assert.equal(made.status, 201, made.text)
  return new WorkerClient(app.url, made.json.text)
}

async function submit(by: Tenant = tenant, workflow: object = WORKFLOW): Promise<string> {
  const answer = await by.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

async function hold(): Promise<HeldLease> {
  const id = await submit()
  const lease = await worker.take()
  assert.equal(lease.jobId, id)
  return lease
}

function outputOf(bytes: Uint8Array, receipt: string) {
  return {
    ...{ asset_id: randomUUID(), node_id: '1', name: 'a.txt', type: 'text', content_type: 'text/plain' },
    ...{ size_bytes: bytes.length, hash: blake3.hash(bytes), receipt },
  }
}

describe('a stolen worker key', () => {
  before(async () => {
    app = await startShared({ joins: 'on' }, { overrides: { engines: [] } })
    tenant = await app.account('tenant', { concurrentJobs: 10 })
    other = await app.account('other')
    worker = await keyFor(['default'])
    stranger = await keyFor(['default'])
    elsewhere = await keyFor(['elsewhere'])
    assert.equal((await worker.publish()).status, 200)
    assert.equal((await stranger.publish()).status, 200)
  })
  after(async () => app[Symbol.asyncDispose]())

  for (const spec of SPECS) {
    test(`opens no operation of ${spec}`, async () => {
      for (const { method, path } of readOperations(`spec/${spec}.openapi.json`)) {
        const at = path.replaceAll(/\{\w+\}/g, randomUUID())
        const ways: Record<string, string>[] = [{ authorization: `Bearer ${worker.key}` }, { 'x-api-key': worker.key }]
        for (const headers of ways) {
          const bare = await call(app.url, at, { method })
          const shown = await call(app.url, at, { method, headers })
          // What is open to everybody is no secret; everything else stays closed.
          const isPublic = bare.status < 400 && bare.status === shown.status
          assert.ok(isPublic || [401, 403, 404, 405].includes(shown.status), `${method} ${at}: ${shown.status}`)
          assert.ok(isPublic || shown.status !== 404 || bare.status === 404, `${method} ${at}: ${shown.status}`)
        }
      }
    })
  }

  test('opens neither the figures of the operator nor the socket of clients', async () => {
    const headers = { authorization: `Bearer ${worker.key}` }
    assert.equal((await call(app.url, '/metrics', { headers })).status, 401)
    assert.equal(
      (await call(app.url, `/ws?token=${worker.key}`, { headers: { upgrade: 'websocket', connection: 'upgrade' } }))
        .status,
      403,
    )
  })

  test('takes no job of a pool that it does not name', async () => {
    assert.equal((await elsewhere.claim()).status, 403)
    assert.equal((await elsewhere.claim({ pool: 'elsewhere', wait_ms: 0 })).status, 204)
  })

  test('reaches nothing under the lease of another worker, even if it knows its id', async () => {
    const lease = await hold()
    const { jobId, leaseId } = lease
    const named = { job_id: jobId, lease_id: leaseId }
    const bytes = Buffer.from('bytes of nobody')
    const hash = blake3.hash(bytes)
    const attempts = {
      renew: await stranger.ask('POST', '/leases', { leases: [named] }),
      commit: await stranger.finish(lease),
      numbers: await stranger.ask('POST', `/jobs/${jobId}/numbers`, {
        lease_id: leaseId,
        folder: '',
        prefix: 'x',
        count: 1,
      }),
      input: await stranger.ask('GET', `/jobs/${jobId}/inputs/${hash}?lease_id=${leaseId}`),
      offer: await stranger.ask('POST', `/jobs/${jobId}/blobs`, { lease_id: leaseId, hash, size_bytes: bytes.length }),
      put: await stranger.ask('PUT', `/jobs/${jobId}/blobs/${hash}?lease_id=${leaseId}`, bytes),
      model: await stranger.ask('POST', `/jobs/${jobId}/models`, {
        lease_id: leaseId,
        model: 'a/b',
        input: '{}',
        images: [],
        key: 'k',
      }),
      release: await stranger.ask('POST', '/release', { leases: [named, { lease_id: leaseId }] }),
    }
    assert.deepEqual(Object.fromEntries(Object.entries(attempts).map(([name, { status }]) => [name, status])), {
      renew: 200,
      commit: 200,
      numbers: 404,
      input: 404,
      offer: 404,
      put: 404,
      model: 404,
      release: 204,
    })
    assert.deepEqual(attempts.renew.json, { held: [] })
    assert.deepEqual(attempts.commit.json, { outcome: 'lost' })
    assert.equal((await tenant.call(`/api/v2/jobs/${jobId}`)).json.status, 'running')
    assert.equal((await worker.finish(lease)).json.outcome, 'committed')
  })

  test('reads no bytes by their hash: only the inputs of the job that it holds', async () => {
    const secret = Buffer.from('a picture of somebody else')
    const form = new FormData()
    form.append('content_type', 'image/png')
    form.append('file_path', 'secret.png')
    form.append('file', new Blob([secret]), 'secret.png')
    const upload = await fetch(`${app.url}/api/v2/assets`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${other.key}` },
    })
    assert.equal(upload.status, 201, await upload.clone().text())
    const hash = blake3.hash(secret)
    const lease = await hold()
    const { jobId, leaseId } = lease
    const path = `/jobs/${jobId}/inputs/${hash}?lease_id=${leaseId}`
    assert.equal((await worker.ask('GET', path)).status, 404)
    // It exists, but not for this account: it is to be sent like bytes that nobody has.
    const offer = await worker.ask('POST', `/jobs/${jobId}/blobs`, {
      lease_id: leaseId,
      hash,
      size_bytes: secret.length,
    })
    assert.deepEqual([offer.status, offer.json], [200, { state: 'wanted' }])
    const claimed = await worker.finish(lease, [outputOf(secret, 'A'.repeat(43))])
    assert.equal(claimed.status, 403)
    const asPiece = { hash, size_bytes: secret.length, receipt: 'A'.repeat(43) }
    const joined = await worker.ask('POST', `/jobs/${jobId}/blobs`, {
      lease_id: leaseId,
      hash,
      size_bytes: secret.length,
      pieces: [asPiece],
    })
    assert.equal(joined.status, 403)
    const wrong = await worker.ask(
      'PUT',
      `/jobs/${jobId}/blobs/${hash}?lease_id=${leaseId}`,
      Buffer.from('something else'),
    )
    assert.equal(wrong.status, 409)
    assert.equal((await worker.finish(lease)).json.outcome, 'committed')
    assert.deepEqual((await tenant.call(`/api/v2/jobs/${jobId}`)).json.outputs, [])
  })

  test('finishes its own job with what it stored itself, and with nothing that was stored under another lease', async () => {
    const [first, second] = [await hold(), await hold()]
    const bytes = Buffer.from(`an output ${randomUUID()}`)
    const hash = blake3.hash(bytes)
    const put = await worker.ask('PUT', `/jobs/${first.jobId}/blobs/${hash}?lease_id=${first.leaseId}`, bytes)
    assert.equal(put.status, 200, put.text)
    const { receipt } = put.json
    assert.equal((await worker.finish(second, [outputOf(bytes, receipt)])).status, 403)
    const sent = outputOf(bytes, receipt)
    const done = await worker.finish(first, [sent])
    assert.equal(done.json.outcome, 'committed', done.text)
    const job = (await tenant.call(`/api/v2/jobs/${first.jobId}`)).json
    assert.equal(job.status, 'succeeded')
    const content = await tenant.call(`/api/v2/assets/${job.outputs[0].id}/content`)
    assert.equal(content.status, 302)
    // The account has them now: another of its jobs need not bring them again.
    const offer = await worker.ask('POST', `/jobs/${second.jobId}/blobs`, {
      lease_id: second.leaseId,
      hash,
      size_bytes: bytes.length,
    })
    assert.equal(offer.json.state, 'stored')
    // An id that it made up is no way to a record of somebody else, nor does a wrong size become one of an output.
    assert.notEqual(job.outputs[0].id, sent.asset_id)
    const wrong = { lease_id: second.leaseId, hash, size_bytes: bytes.length + 1 }
    const lie = await worker.ask('POST', `/jobs/${second.jobId}/blobs`, wrong)
    assert.deepEqual(lie.json, { state: 'wanted' })
    assert.equal((await worker.finish(second, [outputOf(bytes, offer.json.receipt)])).json.outcome, 'committed')
    // A repeated end is answered as the first one, and a finished lease opens nothing.
    const late = await worker.ask('PUT', `/jobs/${first.jobId}/blobs/${hash}?lease_id=${first.leaseId}`, bytes)
    assert.equal(late.status, 404)
  })

  test('joins pieces to one output, in their order', async () => {
    const lease = await hold()
    const { jobId, leaseId } = lease
    const pieces = [Buffer.from('first '), Buffer.from('second')]
    const whole = Buffer.concat(pieces)
    const stored = []
    for (const piece of pieces) {
      const put = await worker.ask('PUT', `/jobs/${jobId}/blobs/${blake3.hash(piece)}?lease_id=${leaseId}`, piece)
      stored.push(put.json)
    }
    const join = (order: readonly object[]) =>
      worker.ask('POST', `/jobs/${jobId}/blobs`, {
        lease_id: leaseId,
        hash: blake3.hash(whole),
        size_bytes: whole.length,
        pieces: order,
      })
    assert.equal((await join(stored.toReversed())).status, 409)
    const joined = await join(stored)
    assert.equal(joined.json.state, 'stored', joined.text)
    assert.equal((await worker.finish(lease, [outputOf(whole, joined.json.receipt)])).json.outcome, 'committed')
  })

  test('publishes engines under its own name only', async () => {
    // Once more: what was published at first may have lapsed on a busy machine.
    for (const owner of [worker, stranger]) await owner.publish()
    const { id: victim } = (await app.admin('GET', '/engines')).json.engines.find(({ id }: { id: string }) =>
      id.startsWith('gpu@'),
    )
    const answer = await elsewhere.publish(victim, { state: 'lost' })
    assert.equal(answer.status, 200, answer.text)
    const engines = (await app.admin('GET', '/engines')).json.engines as { id: string; state: string }[]
    assert.equal(engines.find(({ id }) => id === victim)?.state, 'ready')
    assert.equal(engines.filter(({ id }) => id.startsWith(`${victim}@`)).length, 1)
  })

  test('sends no more than fits, and nothing that the contract does not know', async () => {
    const lease = await hold()
    const { jobId, leaseId } = lease
    const many = Array.from({ length: 257 }, () => ({ name: 'gpu', loaded_weights: [], broke_latest_run: false }))
    const rows: [string, number, Promise<{ status: number }>][] = [
      ['engines', 422, worker.claim({ engines: many })],
      ['wait', 422, worker.claim({ wait_ms: 20_001 })],
      ['key', 422, worker.claim({ surprise: true })],
      ['body', 413, worker.ask('POST', '/leases', { leases: [], padding: 'x'.repeat(2_000_000) })],
      [
        'piece',
        413,
        worker.ask(
          'PUT',
          `/jobs/${jobId}/blobs/${'0'.repeat(64)}?lease_id=${leaseId}`,
          Buffer.alloc(64 * 1024 * 1024 + 1),
        ),
      ],
      ['hash', 400, worker.ask('PUT', `/jobs/${jobId}/blobs/abc?lease_id=${leaseId}`, Buffer.from('x'))],
      ['catalog', 409, worker.ask('PUT', `/catalogs/${'a'.repeat(43)}`, Buffer.from('{}'))],
      ['method', 405, worker.ask('GET', '/claims')],
      ['address', 404, worker.ask('GET', '/accounts')],
    ]
    for (const [name, status, asked] of rows) assert.equal((await asked).status, status, name)
    assert.equal((await worker.finish(lease)).json.outcome, 'committed')
  })

  test('is refused on every address of its own surface when it is missing, wrong, or of an account', async () => {
    for (const key of ['', 'atl_000000000000_00000000000000000000000000000000000000', tenant.key]) {
      for (const { method, path } of readOperations('spec/worker.openapi.json')) {
        const at = path.replace('/worker/v1', '').replaceAll(/\{\w+\}/g, randomUUID())
        const { status } = await new WorkerClient(app.url, key).ask(method, at)
        assert.equal(status, 401, `${method} ${path} with ${key.slice(0, 8)}`)
      }
    }
  })

  test('is refused with the versions that are spoken when it speaks another one', async () => {
    for (const version of ['0', '2', '', 'x']) {
      const answer = await call(app.url, '/worker/v1/leases', {
        method: 'POST',
        headers: worker.headers(version),
        body: '{"leases":[]}',
      })
      assert.equal(answer.status, 426, version)
      assert.equal(answer.json.error.type, 'version_unsupported')
      assert.deepEqual(answer.json.error.details, { protocol_versions: [1] })
    }
    const hello = await call(app.url, '/worker/v1/hello', { headers: { authorization: `Bearer ${worker.key}` } })
    assert.deepEqual([hello.status, hello.json.protocol_versions, hello.json.pools], [200, [1], ['default']])
  })

  test('stands in no answer of the service, and is refused from the moment it is revoked', async () => {
    const made = await app.admin('POST', '/workers/keys', { name: 'gone' })
    const gone = new WorkerClient(app.url, made.json.text)
    assert.equal((await gone.ask('POST', '/leases', { leases: [] })).status, 200)
    assert.equal((await app.admin('POST', `/workers/keys/${made.json.id}/revoke`)).status, 200)
    assert.equal((await gone.ask('POST', '/leases', { leases: [] })).status, 401)
    const shown = [await app.admin('GET', '/workers/keys'), await app.admin('GET', '/audit')]
    assert.ok(shown.every(({ text }) => !text.includes(made.json.text.slice(17))))
  })
})
