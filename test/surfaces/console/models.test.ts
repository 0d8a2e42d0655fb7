/** Models and calls over the whole service: what is told of each, pages and filters, and whose calls they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRouter } from '../../support/app/start-router.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { waitUntil } from '../../support/wait-until.ts'

const [MODELS, CALLS] = ['/models', '/calls']

test('models say what they take, give and cost, and whether they run here', async () => {
  await using app = await startRouter()
  const client = createConsoleClient(app.client.url)
  const { models, next } = (await client.ask('GET', MODELS)).json
  const byId = new Map(models.map((model: { id: string }) => [model.id, model]))
  assert.deepEqual([byId.has('fake/secret'), byId.has('fake/old'), next], [false, false, null])
  const paid = byId.get('fake/paid') as Record<string, unknown>
  assert.deepEqual([paid['title'], paid['price'], paid['is_runnable']], ['Paid', '$0.04 per image', true])
  const listed = byId.get('fake/listed') as Record<string, unknown>
  assert.deepEqual([listed['is_runnable'], listed['why_not']], [false, 'it is not released yet'])
  assert.deepEqual((byId.get('fake/strict') as Record<string, unknown>)['example'], { prompt: 'x' })
  const page = (await client.ask('GET', MODELS, `${MODELS}?limit=1`)).json
  const after = (await client.ask('GET', MODELS, `${MODELS}?limit=1&after=${page.next}`)).json
  assert.deepEqual([page.models[0].id, after.models[0].id], [models[0].id, models[1].id])
  for (const query of ['limit=0', 'limit=1001', 'x=1'])
    assert.equal((await client.ask('GET', MODELS, `${MODELS}?${query}`)).status, 400)
})

test('calls on record are listed newest first, by model and state, a page at a time', async () => {
  await using app = await startRouter()
  const client = createConsoleClient(app.client.url)
  for (const key of ['a', 'b', 'c']) await app.client.post('/v2/models/fake/direct', { n: key }, { key })
  await app.client.post('/v2/models/fake/polled/requests', { n: 1 }, { key: 'd' })
  const list = async (query: string) => (await client.ask('GET', CALLS, `${CALLS}${query}`)).json
  await waitUntil(async () => (await list('?state=succeeded')).calls.length === 4)
  const { calls, next_cursor: none } = await list('')
  assert.deepEqual([calls.length, none, calls[0].model, calls[0].is_queued], [4, null, 'fake/polled', true])
  assert.deepEqual([calls[1].status, calls[1].error, calls[1].completed_at !== null], ['succeeded', null, true])
  const ids = calls.map((call: { request_id: string }) => call.request_id)
  const first = await list('?model=fake/direct&limit=2')
  const second = await list(`?model=fake/direct&limit=2&cursor=${first.next_cursor}`)
  assert.deepEqual(
    [...first.calls, ...second.calls].map(({ request_id: id }: { request_id: string }) => id),
    ids.slice(1),
  )
  assert.deepEqual((await list('?state=failed')).calls, [])
  for (const query of ['state=x', 'model=x', 'limit=101', 'cursor=x', `limit=2&cursor=${first.next_cursor}`])
    assert.equal((await client.ask('GET', CALLS, `${CALLS}?${query}`)).status, 400, query)
})
