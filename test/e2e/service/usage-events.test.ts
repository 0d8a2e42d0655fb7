/** Usage events through the whole service: as a feed, and signed to an address that does not always answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { openSpecChecks } from '../../support/clients/check-against-spec.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

const { checkAgainstSpec } = openSpecChecks('admin.openapi.json')
const PRICES = '{"pools":{"*":{"perSecondMicros":1000,"minimumMicros":500,"holdMicros":2000}}}'

async function run({ call }: Tenant): Promise<string> {
  const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'paid' } } } })
  const { json } = await call('/api/v2/jobs', { method: 'POST', body })
  await call(json.urls.events)
  return `job:${json.id}:charge`
}

async function ask(app: SharedApp, method: string, path: string, body?: object) {
  const answer = await app.admin(method, path, body)
  checkAgainstSpec(method, `/admin/v1${path.replace(/\?.*/, '')}`, answer.status, answer.json)
  return answer
}

test('charges of all accounts are read page by page, and arrive signed, each batch under one id until it is taken', async () => {
  await using receiver = await startWebhookReceiver()
  await using app = await startShared({ prices: PRICES })
  const tenants = [
    await app.account('one', { creditFloorMicros: 0 }),
    await app.account('two', { creditFloorMicros: 0 }),
  ]
  for (const { id } of tenants) await app.admin('POST', `/accounts/${id}/grants`, { usd: '1' })
  assert.equal((await ask(app, 'GET', '/usage-export')).status, 404)
  const before = [await run(tenants[0] as Tenant), await run(tenants[1] as Tenant)]

  const first = await ask(app, 'GET', '/usage-events?limit=1')
  const second = await ask(app, 'GET', `/usage-events?after=${first.json.next}`)
  const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id)
  assert.deepEqual(idsOf([...first.json.events, ...second.json.events]), before)
  assert.deepEqual([first.json.last, second.json.last], [false, true])
  assert.deepEqual(
    [...first.json.events, ...second.json.events].map(({ subject }) => subject),
    ['one', 'two'],
  )
  for (const query of ['after=-1', 'after=x', 'limit=0', 'limit=1001', 'from=1'])
    assert.equal((await app.admin('GET', `/usage-events?${query}`)).status, 400, query)

  const url = `${receiver.url}/failing/usage`
  for (const body of [{}, { url: 'ftp://x' }, { url, from: 'never' }, { url, secret: 'mine' }])
    assert.equal((await app.admin('PUT', '/usage-export', body)).status, 422, JSON.stringify(body))
  const made = await ask(app, 'PUT', '/usage-export', { url, from: 'beginning' })
  receiver.expect('/failing/usage', made.json.secret)
  const after = await run(tenants[0] as Tenant)
  const taken = () => receiver.received.filter(({ isTaken }) => isTaken)
  const idsTaken = () => taken().flatMap(({ data }) => idsOf(data['events'] as { id: string }[]))
  await waitUntil(() => idsTaken().includes(after))
  assert.deepEqual(idsTaken(), [...before, after])
  // Each came once in vain, as the same bytes under the same id.
  for (const { id, body, type, fault } of taken()) {
    const tries = receiver.received.filter((each) => each.id === id)
    assert.deepEqual(
      [tries.length, new Set(tries.map((each) => each.body)).size, type, fault],
      [2, 1, 'usage.events', null],
    )
    assert.ok(body.includes('"specversion":"1.0"'))
  }
  await waitUntil(async () => (await app.admin('GET', '/usage-export')).json.failure === null)
  const state = await ask(app, 'GET', '/usage-export')
  assert.deepEqual(Object.keys(state.json).sort(), ['failure', 'sent_at', 'sent_up_to', 'since', 'url'])
  assert.equal((await app.admin('DELETE', '/usage-export')).status, 204)
  assert.equal((await ask(app, 'DELETE', '/usage-export')).status, 404)
  const audit = await app.admin('GET', '/audit?subject=usage-export')
  assert.equal(audit.json.records.length, 2)
  assert.ok(!audit.text.includes(made.json.secret))
})
