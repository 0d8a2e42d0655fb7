/** Accounts take turns on the built-in engine: who holds every slot gives one back when others wait, and loses nothing by it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShared, type Tenant } from '../../support/app/start-shared.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SHORT = { '1': { class_type: 'FakeSource', inputs: {} } }
const LONG = { '1': { class_type: 'FakeGate', inputs: {} } }
const TURN_MS = 3000

async function submit(tenant: Tenant, workflow: object): Promise<string> {
  const answer = await tenant.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

const find = async (tenant: Tenant, id: string) => (await tenant.call(`/api/v2/jobs/${id}`)).json
const isNow = async (tenant: Tenant, id: string, status: string) => (await find(tenant, id)).status === status

async function statusesOf(tenant: Tenant, ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await find(tenant, id)).status as string))
}

function countRunning(statuses: readonly string[]): number {
  return statuses.filter((status) => status === 'running').length
}

test('a job of another account gets a slot after the turn of whoever holds them all, and those jobs end well afterwards', async () => {
  const clock = createFixedClock()
  const prices = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, minimumMicros: 700, holdMicros: 1000 } } })
  await using app = await startShared({ workers: '2', prices }, { overrides: { clock } })
  const [greedy, other] = [
    await app.account('greedy', { creditFloorMicros: 0, concurrentJobs: 8 }),
    await app.account('other'),
  ]
  await app.admin('POST', '/accounts/greedy/grants', { micros: 100_000, memo: 'a gift' })
  const held = [await submit(greedy, LONG), await submit(greedy, LONG), await submit(greedy, LONG)]
  await waitUntil(async () => countRunning(await statusesOf(greedy, held)) === 2)
  // Nobody else waits: the turn is over and nobody minds.
  clock.advance(10 * TURN_MS)
  const short = await submit(other, SHORT)
  await waitUntil(() => isNow(other, short, 'succeeded'))
  await waitUntil(async () => countRunning(await statusesOf(greedy, held)) === 2)
  // The one that gave way is behind the one that had not begun.
  const [one, two, third] = await statusesOf(greedy, held)
  assert.deepEqual([[one, two].sort(), third], [['queued', 'running'], 'running'])
  app.engine.release()
  for (const id of held) await waitUntil(() => isNow(greedy, id, 'succeeded'))
  // One ran for ten turns, the two others ended in the moment of their last start; what gave way costs nothing.
  const balance = await app.service.app.store.ledger.balance('greedy')
  assert.deepEqual([balance?.held, balance?.available], [0, 100_000 - 10 * TURN_MS - 700 - 700])
  assert.deepEqual((await app.service.app.store.ledger.check()).faults, [])
})

test('with a single slot accounts take turns, and every job ends well', async () => {
  const clock = createFixedClock()
  await using app = await startShared({ workers: '1' }, { overrides: { clock } })
  const [one, two] = [await app.account('one'), await app.account('two')]
  const long = await submit(one, LONG)
  await waitUntil(() => isNow(one, long, 'running'))
  const first = await submit(two, LONG)
  clock.advance(TURN_MS)
  await waitUntil(() => isNow(two, first, 'running'))
  await waitUntil(() => isNow(one, long, 'queued'))
  clock.advance(TURN_MS)
  await waitUntil(() => isNow(one, long, 'running'))
  await waitUntil(() => isNow(two, first, 'queued'))
  app.engine.release()
  await waitUntil(() => isNow(one, long, 'succeeded'))
  await waitUntil(() => isNow(two, first, 'succeeded'))
})
