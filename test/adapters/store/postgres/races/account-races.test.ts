/** What several processes do to the same accounts, keys, files and deployments at the same moment. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { silentLog } from '../../../../../lib/log.ts'
import { type Connections, openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { runOn } from '../../../../../src/adapters/store/postgres/shared-stores.ts'
import { command, postgresOnly, query } from '../../../../../src/adapters/store/statements/statement.ts'
import { accountDirectory } from '../../../../../src/adapters/store/stores/account-directory.ts'
import { keyStore } from '../../../../../src/adapters/store/stores/key-store.ts'
import { integer, shape } from '../../../../../src/adapters/store/tables/table.ts'
import type { AccountRecord } from '../../../../../src/domain/accounts/account.ts'
import { digestOf, newKeyId, type StoredKey } from '../../../../../src/domain/accounts/keys/api-key.ts'
import type { Store } from '../../../../../src/domain/store.ts'
import { newDeployment } from '../../../../contracts/accounts/deployment-store.ts'
import { at, START } from '../../../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'

const NODES = 3
const LIMITS = { maxRunning: 1, maxQueued: 2, creditFloor: 0 }

/** Three stores on one database, and connections of a fourth process whose transactions the test holds open. */
async function withStores(body: (stores: readonly Store[], slow: Connections) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  const stores: Store[] = []
  for (let count = 0; count < NODES; count += 1) {
    stores.push(stack.use(await openPostgresStore({ url, migrates: false })))
  }
  await body(stores, stack.use(openConnections({ url, log: silentLog })))
}

function newAccount(): AccountRecord {
  const id = randomUUID()
  return { id, name: 'A', tier: 'free', overrides: {}, status: 'active', createdAt: START }
}

function newKey(accountId: string): StoredKey {
  const id = newKeyId()
  return {
    ...{
      id,
      accountId,
      name: 'ci',
      scopes: null,
      endpoints: null,
      createdAt: START,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    },
    ...{ digest: new Uint8Array(digestOf(id)), previousDigest: null, previousUntil: null },
  }
}

const WAITING = query(
  'test.waiting',
  shape({ count: integer() }),
  postgresOnly(
    "SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  ),
)

/** Until as many transactions wait for another one. */
async function untilWaiting({ read }: Connections, count: number): Promise<void> {
  while (((await read.get(WAITING))?.count ?? 0) < count) await nextTurn()
}

/** Begins a transaction, runs the body and commits only when told to. */
function beginSlowly(slow: Connections, body: Parameters<Connections['durable']['transaction']>[0]) {
  const written = Promise.withResolvers<void>()
  const mayCommit = Promise.withResolvers<void>()
  const committed = slow.durable.transaction(async (tx) => {
    await body(tx)
    written.resolve()
    await mayCommit.promise
  })
  return {
    written: Promise.race([written.promise, committed]),
    commit: async () => {
      mayCommit.resolve()
      await committed
    },
  }
}

describe('accounts under several processes', () => {
  test('a change that is committed late is not missed by those who ask for what is new', () =>
    withStores(async ([first, second], slow) => {
      const [late, quick] = [newAccount(), newAccount()]
      const begun = beginSlowly(slow, (tx) => runOn(tx, accountDirectory.operations.create.steps(late, LIMITS)))
      await begun.written
      const created = first.directory.create(quick, LIMITS)
      await untilWaiting(slow, 1)
      const before = await second.directory.changedAfter(0, 10)
      await begun.commit()
      await created
      const version = before.at(-1)?.version ?? 0
      const after = await second.directory.changedAfter(version, 10)
      assert.deepEqual(
        [...before, ...after].map(({ account }) => account.id),
        [late.id, quick.id],
      )
    }))

  test('so it is with keys', () =>
    withStores(async ([first, second], slow) => {
      const account = newAccount()
      await first.directory.create(account, LIMITS)
      const [late, quick] = [newKey(account.id), newKey(account.id)]
      await first.apiKeys.insert(late)
      await first.apiKeys.insert(quick)
      const known = (await second.apiKeys.changedAfter(0, 10)).at(-1)?.version ?? 0
      const begun = beginSlowly(slow, (tx) => runOn(tx, keyStore.operations.revoke.steps(late.id, START)))
      await begun.written
      const revoked = first.apiKeys.revoke(quick.id, START)
      await untilWaiting(slow, 1)
      assert.deepEqual(await second.apiKeys.changedAfter(known, 10), [])
      await begun.commit()
      await revoked
      const after = await second.apiKeys.changedAfter(known, 10)
      assert.deepEqual(
        after.map(({ key }) => key.id),
        [late.id, quick.id],
      )
    }))

  test('a reader that follows the versions while all write sees every account', () =>
    withStores(async (stores) => {
      const accounts = Array.from({ length: 60 }, newAccount)
      const seen = new Set<string>()
      let version = 0
      let isDone = false
      const follow = async () => {
        const changed = await stores[0].directory.changedAfter(version, 7)
        for (const { account } of changed) seen.add(account.id)
        version = changed.at(-1)?.version ?? version
        return changed.length
      }
      const following = (async () => {
        while (!isDone) await follow()
        while ((await follow()) > 0);
      })()
      await Promise.all(accounts.map((account, index) => stores[index % NODES].directory.create(account, LIMITS)))
      isDone = true
      await following
      assert.deepEqual(seen, new Set(accounts.map(({ id }) => id)))
    }))

  test('an id is given once, and a grant through several processes leaves one line for each who asked', () =>
    withStores(async (stores) => {
      const account = newAccount()
      const created = await Promise.all(stores.map(({ directory }) => directory.create(account, LIMITS)))
      assert.deepEqual(created.sort(), [false, false, true])
      const grant = { id: randomUUID(), accountId: account.id, micros: 5, at: START, memo: '' }
      const entry = { actor: 'somebody', action: 'credit.grant', subject: account.id, at: START, details: {} }
      await Promise.all(stores.map((store) => store.audited(entry).ledger.grant(grant)))
      const lines = await stores[0].audit.list({ limit: 10, before: null, subject: account.id })
      assert.deepEqual(lines.map(({ outcome }) => outcome).sort(), ['granted', 'repeated', 'repeated'])
      assert.equal((await stores[1].ledger.balance(account.id))?.available, 5)
    }))

  test('uses of the same keys are reported by all in any order', () =>
    withStores(async (stores) => {
      const account = newAccount()
      await stores[0].directory.create(account, LIMITS)
      const keys = Array.from({ length: 20 }, () => newKey(account.id))
      for (const key of keys) await stores[0].apiKeys.insert(key)
      const reports = Array.from({ length: 12 }, (_, index) => {
        const uses = keys.map(({ id }) => ({ keyId: id, at: at(index + 1) }))
        return stores[index % NODES].apiKeys.touch(index % 2 === 0 ? uses : uses.reverse())
      })
      await Promise.all(reports)
      const used = await stores[0].apiKeys.list(account.id)
      assert.ok(used.every(({ lastUsedAt }) => lastUsedAt?.getTime() === at(12).getTime()))
    }))

  test('limits of many accounts are enforced by all at once, in any order', () =>
    withStores(async (stores) => {
      const accounts = Array.from({ length: 20 }, newAccount)
      await Promise.all(accounts.map((account) => stores[0].directory.create(account, LIMITS)))
      const enforced = Array.from({ length: 9 }, (_, index) => {
        const floor = index % 3 === 0 ? null : -index
        const limits = accounts.map(({ id }) => ({
          accountId: id,
          maxRunning: index,
          maxQueued: index,
          creditFloor: floor,
        }))
        return stores[index % NODES].directory.enforce(index % 2 === 0 ? limits : limits.reverse())
      })
      await Promise.all(enforced)
      await stores[0].directory.enforce(
        accounts.map(({ id }) => ({ accountId: id, maxRunning: 1, maxQueued: 1, creditFloor: -77 })),
      )
      const balances = await Promise.all(accounts.map(({ id }) => stores[1].ledger.balance(id)))
      assert.ok(balances.every((balance) => balance?.floor === -77))
    }))

  test('requests of an account never get more than its burst, whoever asks', () =>
    withStores(async (stores) => {
      const accountId = randomUUID()
      const grants = await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          stores[index % NODES].limits.takeRequests(accountId, { perMinute: 60, burst: 25 }, 2, START),
        ),
      )
      assert.equal(
        grants.reduce((sum, { granted }) => sum + granted, 0),
        25,
      )
    }))

  test('files of an account never get beyond its bounds, whoever writes', () =>
    withStores(async (stores) => {
      const accountId = randomUUID()
      const limits = { maxFiles: 5, maxTotalBytes: 35 }
      const put = (index: number) => ({
        ...{ path: `file ${index % 12}`, bytes: new Uint8Array(10), overwrite: true, now: START, limits },
      })
      await Promise.all(
        Array.from({ length: 48 }, (_, index) => stores[index % NODES].userFiles.put(accountId, put(index))),
      )
      const files = await stores[0].userFiles.list(accountId)
      assert.equal(files.length, 3)
      const moved = await Promise.all(
        stores.map(({ userFiles }) => userFiles.move(accountId, { from: files[0].path, to: 'new', overwrite: false })),
      )
      assert.deepEqual(moved.map(({ outcome }) => outcome).sort(), ['not_found', 'not_found', 'stored'])
    }))

  test('a deployment does not stop while a job is on its way into its pool', () =>
    withStores(async ([store], slow) => {
      const { id } = newDeployment()
      await store.deployments.create(newDeployment({ id, state: 'draining' }))
      const begun = beginSlowly(slow, async (tx) => {
        await tx.run(ENTER, { id })
        await tx.run(ADD_JOB, { jobId: randomUUID(), id })
      })
      await begun.written
      const stopped = store.deployments.move({ id, from: ['draining'], to: 'stopped', at: at(1), onlyWhenEmpty: true })
      await untilWaiting(slow, 1)
      await begun.commit()
      assert.equal(await stopped, null)
      assert.deepEqual(await store.deployments.loads([id, 'default']), [
        { pool: id, queued: 1, running: 0 },
        { pool: 'default', queued: 0, running: 0 },
      ])
    }))

  test('ids that no text of the database can hold are unknown', () =>
    withStores(async ([store]) => {
      const id = 'a\u0000b'
      assert.equal(await store.directory.find(id), null)
      assert.equal(await store.apiKeys.find(id), null)
      assert.equal(await store.deployments.configure({ id, workers: 1, idleAfterMs: null, at: START }), null)
      assert.deepEqual(await store.deployments.loads([id]), [{ pool: 'a\u2400b', queued: 0, running: 0 }])
      assert.deepEqual(await store.ledger.refund({ holdId: id, micros: null, at: START, memo: id }), {
        outcome: 'not_charged',
      })
    }))
})

const ENTER = command('test.enter', postgresOnly('SELECT 1 FROM deployment WHERE id = :id FOR KEY SHARE'))
const ADD_JOB = command(
  'test.addJob',
  postgresOnly(`
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count)
    VALUES (:jobId, 'somebody', :id, 'queued', 0, 0, 0, 0, 0)`),
)
