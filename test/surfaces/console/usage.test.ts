/** Usage over the whole service: what the account, and what the operator, is told of the ledger. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { openSpecChecks } from '../../support/clients/check-against-spec.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const PRICES = '{"pools":{"*":{"perSecondMicros":0,"minimumMicros":500,"holdMicros":2000}}}'
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
const USAGE = '/usage'
const adminSpec = openSpecChecks('admin.openapi.json')

test('what an account spent is told to it, by day, pool and key, and to the operator by account', async () => {
  await using shared = await startShared({ prices: PRICES })
  const [ann, bob] = [
    await shared.account('ann', { creditFloorMicros: -1_000_000 }),
    await shared.account('bob', { creditFloorMicros: -1_000_000 }),
  ]
  for (const { key, times } of [
    { key: ann.key, times: 3 },
    { key: bob.key, times: 1 },
  ]) {
    const client = createConsoleClient(shared.url, key)
    for (let index = 0; index < times; index += 1) await client.untilStatus(await client.submit(SAVE), 'succeeded')
  }
  const client = createConsoleClient(shared.url, ann.key)
  const { json } = await client.ask('GET', USAGE, `${USAGE}?by=key&tz=Asia/Kathmandu`)
  assert.deepEqual([json.total_usd, json.held_usd, json.refunds_usd, json.count], ['0.0015', '0.00', '0.00', 3])
  const [row, ...others] = json.rows
  assert.deepEqual([row.count, row.usd, row.key.length, others], [3, '0.0015', 12, []])
  assert.equal(json.series.at(-1).usd, '0.0015')
  const pools = (await client.ask('GET', USAGE, `${USAGE}?by=pool`)).json
  assert.deepEqual(pools.rows, [{ key: 'default', label: null, kind: 'job', count: 3, usd: '0.0015' }])
  const all = await shared.admin('GET', '/usage?by=account')
  adminSpec.checkAgainstSpec('GET', '/admin/v1/usage', all.status, all.json)
  assert.deepEqual(
    all.json.rows.map(({ key, label, usd }: Record<string, string>) => [key, label, usd]),
    [
      ['ann', 'ann', '0.0015'],
      ['bob', 'bob', '0.0005'],
    ],
  )
  assert.equal((await shared.admin('GET', '/usage?account=bob')).json.total_usd, '0.0005')
  assert.equal((await shared.admin('GET', '/usage?account=nobody')).status, 404)
})

test('a period has bounds, and what is not understood is refused', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const ask = (query: string) => client.ask('GET', USAGE, `${USAGE}?${query}`)
  const days = (await ask('from=2026-03-28&to=2026-03-31&tz=Europe/Vienna')).json
  assert.deepEqual(
    [days.from, days.to, days.series.length, days.total_usd],
    ['2026-03-27T23:00:00.000Z', '2026-03-30T22:00:00.000Z', 3, '0.00'],
  )
  for (const query of [
    ...['by=account', 'by=x', 'tz=Nowhere', `tz=${'x'.repeat(100)}`, 'from=x', 'from=2026-02-30', 'to=1', 'who=me'],
    ...['from=2026-01-02&to=2026-01-02', 'from=2020-01-01&to=2026-01-01', 'by=day&by=day', 'from=2026-13-01'],
  ])
    assert.equal((await ask(query)).status, 400, query)
})
