/** Many jobs of one request, through the whole service. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { type SharedApp, startShared } from '../../support/app/start-shared.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import type { Answer } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

const SAVE = { '1': node('FakeSave', { text: 'a' }) }
const GATE = { '1': node('FakeGate') }
const BROKEN = { '1': node('Gone') }

interface WireItem {
  readonly index: number
  readonly job_id: string | null
  readonly status: string | null
  readonly error: { readonly status: number; readonly code: string } | null
}

describe('a batch', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({
      overrides: { engine },
      settings: { workers: '2', maxQueue: '1500', webhookPrivateNetwork: 'true' },
    })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const post = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    client.call('/api/v2/jobs/batch', { method: 'POST', headers, body: JSON.stringify(body) })
  const read = async (id: string) => (await client.call(`/api/v2/batches/${id}`)).json
  const queued = async () => (await service.app.store.accounts.findUse('local'))?.queued
  const untilDone = (id: string) =>
    waitUntil(async () => {
      const batch = await read(id)
      return batch.is_done ? batch : null
    })
  const workflowOf = async (item: WireItem | undefined) =>
    (await client.call(`/api/v2/jobs/${item?.job_id}/workflow`)).json.workflow

  test('of jobs one by one runs them all; its jobs are listed, and what they made is one archive', async () => {
    const jobs = [{ workflow: SAVE }, { workflow: SAVE, metadata: { n: '2' }, priority: 4 }]
    const made = await post({ jobs, metadata: { common: 'yes' } })
    assert.equal(made.status, 201, made.text)
    const { id, urls } = made.json
    assert.deepEqual(
      [made.json.total, made.json.accepted, made.json.refused, made.json.mode],
      [2, 2, 0, 'all_or_nothing'],
    )
    const batch = await untilDone(id)
    assert.deepEqual([batch.counts.succeeded, batch.progress], [2, 1])
    const listed = (await client.call(urls.jobs)).json.jobs as { id: string; metadata: object; priority: number }[]
    assert.deepEqual(
      listed.map((job) => job.id),
      batch.items.map((item: WireItem) => item.job_id).toReversed(),
    )
    assert.deepEqual(
      listed.map(({ metadata, priority }) => [metadata, priority]),
      [
        [{ n: '2' }, 4],
        [{ common: 'yes' }, 0],
      ],
    )
    const archive = await client.call(urls.outputs)
    assert.equal(archive.headers['content-type'], 'application/zip')
    assert.ok(archive.text.includes(`1-${batch.items[0].job_id.slice(0, 8)}/`))
    assert.equal((await client.call('/api/v2/jobs?batch_id=nothing')).status, 400)
  })

  test('of one graph with rows or a product has a job for each', async () => {
    const workflow = { ...SAVE, '2.5': node('FakeValue', { key: 'k', value: 1 }) }
    const rows = [{ '1.text': 'b' }, { '1.text': 'c', '2.5.value': 18446744073709551615n }]
    const text = JSON.stringify({ workflow, rows }, (_, value) => (typeof value === 'bigint' ? `#${value}#` : value))
    const made = await client.call('/api/v2/jobs/batch', { method: 'POST', body: text.replaceAll(/"#|#"/g, '') })
    assert.equal(made.status, 201, made.text)
    const second = await client.call(`/api/v2/jobs/${made.json.items[1].job_id}/workflow`)
    assert.match(second.text, /"value":18446744073709551615/)
    assert.equal((await workflowOf(made.json.items[0]))['1'].inputs.text, 'b')
    const product = { '1.text': ['x', 'y'], '2.5.value': [1, 2, 3] }
    const multiplied = await post({ workflow, product })
    assert.equal(multiplied.json.total, 6)
    const graph = await workflowOf(multiplied.json.items[4])
    assert.deepEqual([graph['1'].inputs.text, graph['2.5'].inputs.value], ['y', 2])
    await untilDone(made.json.id)
    await untilDone(multiplied.json.id)
  })

  test('is refused whole when one job is wrong, or takes the others where that was asked for', async () => {
    const jobs = [{ workflow: SAVE }, { workflow: BROKEN }, { workflow: SAVE, priority: 'x' }]
    const refused = await post({ jobs }, { 'idempotency-key': 'free' })
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'batch_refused'])
    assert.deepEqual(
      refused.json.error.details.items.map(({ index, code }: { index: number; code: string }) => [index, code]),
      [
        [1, 'invalid_workflow'],
        [2, 'invalid_request'],
      ],
    )
    assert.equal(await queued(), 0)
    const made = await post({ jobs, mode: 'per_item' }, { 'idempotency-key': 'free' })
    assert.equal(made.status, 201, made.text)
    assert.deepEqual([made.json.accepted, made.json.refused], [1, 2])
    const { items } = await untilDone(made.json.id)
    assert.deepEqual(
      items.map(({ status, error }: WireItem) => status ?? error?.code),
      ['succeeded', 'invalid_workflow', 'invalid_request'],
    )
    const none = await post({ jobs: [{ workflow: BROKEN }], mode: 'per_item' })
    assert.deepEqual([none.status, none.json.error.code], [422, 'batch_refused'])
  })

  test('holds its jobs until a time and lets them expire, all of them or one by one', async () => {
    const time = new Date(Date.now() + 3_600_000).toISOString()
    const later = new Date(Date.now() + 7_200_000).toISOString()
    const own = { workflow: SAVE, not_before: later, expires_queued_after: null }
    const made = await post({ jobs: [{ workflow: SAVE }, own], not_before: time, expires_queued_after: 4000 })
    assert.equal(made.status, 201, made.text)
    const find = (item: WireItem) => service.app.store.jobs.find('local', item.job_id ?? '', new Date())
    const jobs = await Promise.all(made.json.items.map(find))
    assert.deepEqual(
      jobs.map((job) => [job?.status, job?.notBefore?.toISOString(), job?.queueUntil === undefined]),
      [
        ['queued', time, false],
        ['queued', later, true],
      ],
    )
    const rows = await post({ workflow: SAVE, rows: [{ '1.text': 'b' }], not_before: time })
    assert.equal((await client.call(`/api/v2/jobs/${rows.json.items[0].job_id}`)).json.not_before, time)
    const past = new Date(Date.now() - 1000).toISOString()
    for (const [fields, field] of [
      [{ not_before: past }, 'not_before'],
      [{ not_before: 'soon' }, 'not_before'],
      [{ not_before: time, expires_queued_after: 5 }, 'expires_queued_after'],
      [{ expires_queued_after: -1 }, 'expires_queued_after'],
    ] as const) {
      const refused = await post({ jobs: [{ workflow: SAVE, ...fields }] })
      assert.deepEqual([refused.status, refused.json.error.code], [422, 'batch_refused'], refused.text)
      assert.equal(refused.json.error.details.items[0].details.field, field)
    }
    for (const { id } of [made.json, rows.json]) await client.call(`/api/v2/batches/${id}/cancel`, { method: 'POST' })
  })

  test('has one key: the same request is the same batch, another request is refused', async () => {
    const key = { 'idempotency-key': 'once' }
    const body = { jobs: [{ workflow: SAVE }, { workflow: SAVE }] }
    const [one, two] = await Promise.all([post(body, key), post(body, key)])
    assert.deepEqual([one.status, two.status], [201, 201])
    assert.equal(one.json.id, two.json.id)
    await untilDone(one.json.id)
    assert.deepEqual((await post(body, key)).json, await read(one.json.id))
    const other = await post({ jobs: [{ workflow: SAVE }] }, key)
    assert.deepEqual([other.status, other.json.error.code], [422, 'idempotency_key_reuse'])
    assert.equal(other.json.error.details.batch_id, one.json.id)
    assert.equal((await client.submit({ workflow: SAVE }, key)).json.error.details.batch_id, one.json.id)
    await client.accepted(SAVE, {}, { 'idempotency-key': 'of a job' })
    assert.equal((await post(body, { 'idempotency-key': 'of a job' })).json.error.code, 'idempotency_key_reuse')
  })

  test('of a thousand is canceled whole, what runs and what waits', async () => {
    const made = await post({ jobs: Array.from({ length: 1000 }, () => ({ workflow: GATE })) })
    assert.equal(made.status, 201)
    await waitUntil(async () => (await read(made.json.id)).counts.running === 2)
    const full = await post({ jobs: Array.from({ length: 600 }, () => ({ workflow: GATE })) })
    assert.deepEqual([full.status, full.json.error.code, full.json.error.details], [429, 'queue_full', { room: 502 }])
    const canceled = await client.call(`/api/v2/batches/${made.json.id}/cancel`, { method: 'POST' })
    assert.equal(canceled.status, 200)
    assert.deepEqual([canceled.json.counts.queued, canceled.json.counts.running], [0, 0])
    assert.equal(await queued(), 0)
    assert.equal((await untilDone(made.json.id)).counts.canceled, 1000)
  })

  test('is what `atelier run` makes of a table', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'atelier-batch-'))
    try {
      await writeFile(path.join(folder, 'graph.json'), JSON.stringify(SAVE))
      await writeFile(path.join(folder, 'table.csv'), '1.text\none\n"two, three"\n')
      const words = ['run', 'graph.json', '--batch', 'table.csv', '--out', 'made', '--base-url', service.url]
      const result = await runAtelier(words, { cwd: folder })
      assert.equal(result.code, 0, result.stderr)
      assert.match(result.stderr, /batch [0-9a-f-]+: 2 jobs[\s\S]*2 succeeded/)
      assert.match(await readFile(result.stdout.trim(), 'latin1'), /two, three/)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('tells webhooks of each of its jobs', async () => {
    await using receiver = await startWebhookReceiver()
    const made = await post({ jobs: [{ workflow: SAVE }, { workflow: SAVE }], webhook: receiver.url })
    assert.equal(made.status, 201, made.text)
    await waitUntil(() => receiver.received.length === 2)
  })

  test('of one large graph is refused for its size; what its rows replace does not count', async () => {
    const workflow = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [String(index + 1), node('FakeSave', { text: 'x'.repeat(300) })]),
    )
    const rows = Array.from({ length: 1000 }, (_, index) => ({ '1.text': String(index) }))
    const refused = await post({ workflow, rows })
    assert.deepEqual([refused.status, refused.json.error.code], [413, 'payload_too_large'], refused.text)
    // What the rows replace does not count: the same table over a graph that is large only there fits.
    const large = { '1': node('FakeSave', { text: 'x'.repeat(100_000) }) }
    const made = await post({ workflow: large, rows })
    assert.equal(made.status, 201, made.text)
    await client.call(`/api/v2/batches/${made.json.id}/cancel`, { method: 'POST' })
  })

  test('is refused where the request is wrong as such', async () => {
    const rows = [{ '1.text': 'b' }]
    const wrong: [unknown, RegExp][] = [
      [{}, /jobs or rows or product/],
      [{ jobs: [], rows }, /only one/],
      [{ jobs: [] }, /jobs must be a list of 1 to 1000/],
      [{ jobs: Array(1001).fill({ workflow: SAVE }) }, /1 to 1000/],
      [{ jobs: [{ workflow: SAVE }], mode: 'some' }, /all_or_nothing or per_item/],
      [{ workflow: SAVE, rows: [{ '9.text': 'b' }] }, /no <node id>\.<input>/],
      [{ workflow: SAVE, rows: [5] }, /rows\[0\]/],
      [{ workflow: SAVE, product: { '1.text': Array(40).fill('x'), '1.count': Array(40).fill(1) } }, /makes 1600 jobs/],
      [{ workflow: SAVE, product: { '1.text': [] } }, /product must be/],
      [{ workflow: SAVE, rows, priority: 'x' }, /priority/],
      [{ workflow: SAVE, rows, inputs: {} }, /inputs is reserved/],
    ]
    for (const [body, message] of wrong) {
      const answer = await post(body)
      assert.equal(answer.status, 422, answer.text)
      assert.match(answer.json.error.message, message)
    }
    assert.equal((await client.call('/api/v2/batches/nothing')).status, 404)
  })
})

describe('where several accounts share the service', () => {
  let app: SharedApp
  before(async () => {
    const prices = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, holdMicros: 1000 } } })
    app = await startShared({ prices })
  })
  after(() => app[Symbol.asyncDispose]())

  test('credit is held for each job and nobody else sees the batch', async () => {
    const tenant = await app.account('acme', { creditFloorMicros: 0 })
    const other = await app.account('other')
    await app.admin('POST', '/accounts/acme/grants', { micros: 2500, memo: 'a gift' })
    const jobs = Array.from({ length: 3 }, () => ({ workflow: GATE }))
    const post = (mode: string) =>
      tenant.call('/api/v2/jobs/batch', { method: 'POST', body: JSON.stringify({ jobs, mode }) })
    const refused = await post('all_or_nothing')
    assert.deepEqual([refused.status, refused.json.error.code], [402, 'insufficient_credits'])
    assert.deepEqual(refused.json.error.details, { required_micros: 3000 })
    const made = await post('per_item')
    assert.deepEqual([made.status, made.json.accepted], [201, 2])
    assert.equal(made.json.items[2].error.code, 'insufficient_credits')
    assert.equal((await app.service.app.store.ledger.balance('acme'))?.held, 2000)
    assert.equal((await other.call(`/api/v2/batches/${made.json.id}`)).status, 404)
    assert.equal((await other.call(`/api/v2/batches/${made.json.id}/cancel`, { method: 'POST' })).status, 404)
    assert.deepEqual((await other.call(`/api/v2/jobs?batch_id=${made.json.id}`)).json.jobs, [])
    assert.equal((await tenant.call(`/api/v2/batches/${made.json.id}/cancel`, { method: 'POST' })).status, 200)
    app.engine.openGate()
    app.engine.openGate()
  })
})
