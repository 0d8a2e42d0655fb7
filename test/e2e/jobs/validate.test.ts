/** A dry run of a submit: what it answers is what the submit then meets, and nothing of it stays. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const SAVE = { '1': node('FakeSave') }
const NOBODY = '00000000-0000-7000-8000-000000000000'

interface Tried {
  readonly is_accepted: boolean
  readonly complaints: readonly {
    readonly status: number
    readonly code: string
    readonly message: string
    readonly details: Readonly<Record<string, unknown>> | null
  }[]
  readonly [name: string]: unknown
}

describe('on the local kind', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ overrides: { engine }, settings: { workers: '1', maxQueue: '2' } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  async function attempt(body: unknown, headers: Record<string, string> = {}): Promise<Tried> {
    const answer = await client.call('/api/v2/jobs/validate', { method: 'POST', headers, body: JSON.stringify(body) })
    assert.equal(answer.status, 200, answer.text)
    return answer.json as Tried
  }

  test('what is well is said to be accepted, with what it needs, where it can run and how long it waits', async () => {
    const tried = await attempt({ workflow: SAVE, metadata: { a: 'b' } }, { 'idempotency-key': 'dry' })
    assert.deepEqual([tried.is_accepted, tried.complaints], [true, []])
    assert.deepEqual(tried['needs'], { classes: ['FakeSave'], weights: [] })
    assert.deepEqual(tried['missing'], { classes: [], weights: [] })
    assert.deepEqual(tried['wait'], { ahead: 0, estimate_seconds: 0 })
    const [only, ...others] = tried['engines'] as { is_able: boolean; why_not: string | null }[]
    assert.deepEqual([only?.is_able, only?.why_not, others], [true, null, []])
    assert.equal(tried['price'], null)
  })

  test('nothing is stored: no job, no key, no place in the queue, no run', async () => {
    const counts = await service.app.store.jobs.countByStatus()
    assert.deepEqual(new Set(Object.values(counts)), new Set([0]))
    assert.equal(await service.app.store.keys.findKey('local', 'dry', new Date()), null)
    assert.equal((await service.app.store.accounts.findUse('local'))?.queued, 0)
    assert.equal(engine.runs.length, 0)
  })

  test('every complaint is told, in the order in which a submit looks', async () => {
    const body = {
      workflow: {
        '1': node('FakeSave', { text: { __type: 'core/ASSET', info: { id: NOBODY } } }),
        '2': node('Gone'),
        '3': node('GoneToo'),
      },
      priority: 'high',
      metadata: { 'a b': 'c' },
      inputs: {},
    }
    const { is_accepted: isAccepted, complaints, missing } = await attempt(body)
    assert.equal(isAccepted, false)
    assert.deepEqual(
      complaints.map(({ status, code }) => [status, code]),
      [
        [422, 'metadata_invalid'],
        [422, 'invalid_request'],
        [422, 'invalid_request'],
        [422, 'missing_asset'],
        [422, 'invalid_workflow'],
      ],
    )
    const refused = await client.submit(body)
    const [first] = complaints
    assert.deepEqual(refused.json.error, { code: first?.code, message: first?.message, details: first?.details })
    assert.deepEqual(complaints[3]?.details, { missing_ids: [NOBODY] })
    assert.deepEqual(Object.keys(complaints[4]?.details?.['node_errors'] as object).sort(), ['2', '3'])
    assert.deepEqual(missing, {
      classes: [
        { class_type: 'Gone', node_ids: ['2'] },
        { class_type: 'GoneToo', node_ids: ['3'] },
      ],
      weights: [],
    })
  })

  test('what is no graph has no needs', async () => {
    for (const workflow of [undefined, [], { nodes: [], links: [] }]) {
      const { complaints, needs, missing, engines } = await attempt({ workflow })
      assert.equal(complaints.length, 1)
      assert.deepEqual([needs, missing, engines], [null, null, []])
    }
    const answer = await client.call('/api/v2/jobs/validate', { method: 'POST', body: '[1' })
    assert.equal(answer.status, 400)
  })

  test('a full queue and a used key are told, and the place that the job would have', async () => {
    const gated = { workflow: { '1': node('FakeGate') } }
    const running = await client.accepted(gated.workflow)
    await client.untilStatus(running.id, 'running')
    await client.accepted(gated.workflow, {}, { 'idempotency-key': 'used' })
    await client.accepted(gated.workflow, { priority: 5 })
    const tried = await attempt({ ...gated, priority: 2 }, { 'idempotency-key': 'used' })
    assert.deepEqual(
      tried.complaints.map(({ status, code }) => [status, code]),
      [
        [422, 'idempotency_key_reuse'],
        [429, 'queue_full'],
      ],
    )
    assert.deepEqual(tried['wait'], { ahead: 1, estimate_seconds: null })
    assert.equal((await client.submit(gated)).json.error.code, 'queue_full')
    engine.openGate()
  })
})

test('where several accounts share the service, price and credit are told, and no engine that is unable', async () => {
  const prices = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, minimumMicros: 700, holdMicros: 1000 } } })
  await using app = await startShared({ prices })
  const tenant = await app.account('acme', { creditFloorMicros: 0, requestsPerMinute: 600, requestBurst: 3 })
  const body = JSON.stringify({ workflow: { '1': { class_type: 'Gone', inputs: {} } } })
  const { json } = await tenant.call('/api/v2/jobs/validate', { method: 'POST', body })
  assert.deepEqual(
    json.complaints.map(({ code }: { code: string }) => code),
    ['invalid_workflow', 'insufficient_credits'],
  )
  assert.deepEqual(json.price, { hold_usd: '0.001', per_second_usd: '0.001', minimum_usd: '0.0007' })
  assert.deepEqual(json.engines, [])
  assert.deepEqual((await app.service.app.store.ledger.balance('acme'))?.held, 0)
})
