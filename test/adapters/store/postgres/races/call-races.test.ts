/**
 * Three nodes that let in, take, end, lose and take over calls of a few accounts at once, while connections are cut: limits are never
 * passed, every call that is charged is charged once, and the pools agree with the rows in the end.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createClient } from '../../../../../lib/postgres/driver.ts'
import { openSession } from '../../../../../src/adapters/store/postgres/database/session.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { openAccounts } from '../../../../../src/domain/accounts/accounts.ts'
import { DEFAULT_TIERS } from '../../../../../src/domain/accounts/limits/tiers.ts'
import { isStoreAway } from '../../../../../src/domain/errors.ts'
import type { CallLimits, HeldCall } from '../../../../../src/domain/models/calls/call-store.ts'
import type { Store } from '../../../../../src/domain/store.ts'
import { ending, newCall, PRICE } from '../../../../contracts/calls/call-store.ts'
import { at, START } from '../../../../contracts/store-under-test.ts'
import { createFixedClock } from '../../../../support/fixed-clock.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'
import { withTwoNodes } from '../temporary-store.ts'

const ACCOUNTS = ['one', 'two', 'three']
const MICROS = 100_000_000
const LIMITS: CallLimits = { maxCalls: 4, maxCostlyCalls: 2, ceilingMicros: 3 * PRICE }
const STEPS = 120
const BODY = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }

/** What the nodes did, as they were told. */
interface Seen {
  /** Calls that some node was told to have ended with a charge. */
  readonly charged: string[]
  /** Most calls of an account that were known to be under way at a time. */
  most: number
}

async function workAsNode(store: Store, owner: string, random: () => number, seen: Seen): Promise<void> {
  const held: HeldCall[] = []
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  let now = 0
  const lease = () => ({ owner, until: at(now + 50) })

  async function step(): Promise<void> {
    now += 20
    const accountId = pick(ACCOUNTS)
    const call = newCall(accountId, { key: random() < 0.5 ? null : `k${Math.floor(random() * 20)}`, mayResubmit: true })
    const chance = random()
    if (chance < 0.3) {
      const outcome = await store.calls.admit(call, LIMITS, { isValid: true, lease: lease() })
      if (outcome.outcome === 'admitted') held.push(outcome.ref)
      if ('standing' in outcome) seen.most = Math.max(seen.most, outcome.standing.runningCalls)
    } else if (chance < 0.4) {
      const request = { ...call, body: BODY, bodyBytes: 2, key: null }
      await store.requests.enqueue(request, { maxWaiting: 5, isValid: true })
    } else if (chance < 0.5) {
      const taken = await store.requests.take(accountId, LIMITS, { now: at(now), lease: lease() })
      if (taken !== null) held.push(taken.ref)
    } else if (chance < 0.6) {
      const times = { lapsedBefore: at(now), ownLapsedBefore: at(now - 200), lease: lease() }
      const lapsed = await store.calls.takeLapsed({ ...times, except: held, limit: 2 })
      held.push(...lapsed.map(({ ref }) => ref))
    } else if (chance < 0.65) await store.calls.renew(held, at(now + 50))
    else if (held.length > 0) await endOne(held.splice(Math.floor(random() * held.length), 1)[0] as HeldCall)
  }

  async function endOne(call: HeldCall): Promise<void> {
    if (random() < 0.1) {
      await store.requests.putBack(call, { isLoss: false })
      return
    }
    const fate = pick(['keep', 'forget', 'interrupt'] as const)
    const chargeMicros = fate === 'keep' ? PRICE : null
    const outcome = await store.calls.finish(call, ending({ fate, chargeMicros, end: fate === 'keep' ? END : null }))
    if (outcome !== null && (outcome.chargedMicros ?? 0) > 0) seen.charged.push(call.id)
  }

  for (let count = 0; count < STEPS; count++) {
    await step().catch((error: unknown) => {
      // The connection was cut: what became of the step is not known.
      if (!isStoreAway(error)) throw error
    })
  }
}

const END = ending().end

test('nothing is let in beyond a limit and nothing is charged twice, whatever three nodes do at once', async () => {
  await using stack = new AsyncDisposableStack()
  const clock = createFixedClock()
  const { url } = stack.use(await createTestDatabase())
  const open = async () => stack.use(await openPostgresStore({ url, migrates: false, clock, maxConnections: 6 }))
  const nodes = [await open(), await open(), await open()]
  const accounts = await openAccounts({ directory: nodes[0].directory, tiers: DEFAULT_TIERS, clock })
  for (const id of ACCOUNTS) {
    await accounts.create({ id, name: id, tier: null, overrides: {} })
    await nodes[0].ledger.grant({ id, accountId: id, micros: MICROS, at: clock.now(), memo: 'test' })
  }
  const client = createClient({ url }, { name: 'knife' })
  await client.connect()
  stack.defer(() => client.end())
  const seen: Seen = { charged: [], most: 0 }
  let isOver = false
  const cutting = (async () => {
    while (!isOver) {
      await client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`,
      )
      await client.query('SELECT pg_sleep(0.05)')
    }
  })()
  await Promise.all(
    nodes.map((store, index) => workAsNode(store, randomUUID(), seededRandom(20_261_116 + index).next, seen)),
  )
  isOver = true
  await cutting
  assert.ok(seen.most <= 3, `${seen.most} calls of an account were under way`)
  assert.ok(seen.charged.length > 0)
  assert.equal(new Set(seen.charged).size, seen.charged.length)
  assert.deepEqual((await nodes[0].ledger.check()).faults, [])
  const { rows } = await client.query(
    `SELECT account_id, running::int, costly::int, committed_micros::int FROM router_account ORDER BY account_id`,
  )
  const counted = await client.query(
    `SELECT account_id, count(*) FILTER (WHERE state = 'running')::int AS running,
       count(*) FILTER (WHERE state = 'running' AND costly)::int AS costly,
       coalesce(sum(spend_micros) FILTER (WHERE state = 'running'), 0)::int AS committed_micros
     FROM router_call GROUP BY account_id ORDER BY account_id`,
  )
  assert.deepEqual(rows, counted.rows)
  for (const accountId of ACCOUNTS) {
    const balance = await nodes[0].ledger.balance(accountId)
    const open = await client.query(
      `SELECT coalesce(sum(hold_micros), 0)::int AS held FROM router_call WHERE account_id = $1 AND state IN ('running', 'waiting')`,
      [accountId],
    )
    assert.equal(balance?.held, open.rows[0]?.held)
  }
})

const WAITS_FOR_LOCK = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

test('leases are given back in the order in which all others lock their calls, whatever order they are named in', () =>
  withTwoNodes(async ({ stores: [store], url, query }) => {
    const accountId = randomUUID()
    const calls: HeldCall[] = []
    for (let count = 0; count < 2; count += 1) {
      const call = newCall(accountId, { key: null, holdMicros: null })
      const admitted = await store.calls.admit(call, LIMITS, { isValid: true, lease: { owner: 'a', until: at(50) } })
      if (admitted.outcome === 'admitted') calls.push(admitted.ref)
    }
    const [first, second] = calls as [HeldCall, HeldCall]
    await using other = await openSession({ url })
    await other.client.query('BEGIN')
    await other.client.query('SELECT 1 FROM router_call WHERE seq = $1 FOR UPDATE', [first.seq])
    const released = store.calls.release([second, first])
    while ((await query(WAITS_FOR_LOCK)).length === 0) await nextTurn()
    // Whoever waits for the first holds none behind it.
    const free = await query('SELECT 1 FROM router_call WHERE seq = $1 FOR UPDATE SKIP LOCKED', [second.seq])
    assert.equal(free.length, 1)
    await other.client.query('ROLLBACK')
    await released
    const lapsed = { lapsedBefore: START, ownLapsedBefore: START, except: [], limit: 5 }
    assert.equal((await store.calls.takeLapsed({ ...lapsed, lease: { owner: 'b', until: at(90) } })).length, 2)
  }))

test('calls that name the same webhook do not wait for each other', () =>
  withTwoNodes(async ({ stores: [store], url }) => {
    const hook = {
      id: 'whe_same',
      url: 'https://a.example/hook',
      events: ['call.completed'],
      secret: new Uint8Array([1]),
      description: '',
    }
    const enqueue = () => {
      const call = { ...newCall(randomUUID(), { key: null, holdMicros: null }), body: BODY, bodyBytes: 2, hook }
      return store.requests.enqueue(call, { maxWaiting: 5, isValid: true })
    }
    assert.equal((await enqueue()).outcome, 'queued')
    await using other = await openSession({ url })
    await other.client.query('BEGIN')
    await other.client.query('SELECT 1 FROM webhook_endpoint WHERE id = $1 FOR UPDATE', [hook.id])
    assert.equal((await enqueue()).outcome, 'queued')
  }))
