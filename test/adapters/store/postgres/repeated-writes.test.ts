/** Writes whose commit was answered by a broken connection: run again, they find what the first try did. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { type Connections, openConnections } from '../../../../src/adapters/store/postgres/database/connections.ts'
import { openShared } from '../../../../src/adapters/store/postgres/shared-stores.ts'
import { createJobCancels } from '../../../../src/adapters/store/postgres/stores/postgres-job-store.ts'
import { toAuditedParts } from '../../../../src/adapters/store/postgres/stores/store-parts.ts'
import { command, postgresOnly, query } from '../../../../src/adapters/store/statements/statement.ts'
import { callSteps, requestSteps } from '../../../../src/adapters/store/stores/calls/call-stores.ts'
import { uploadStore } from '../../../../src/adapters/store/stores/upload-store.ts'
import { integer, shape } from '../../../../src/adapters/store/tables/table.ts'
import type { CallLimits } from '../../../../src/domain/models/calls/call-store.ts'
import type { Store } from '../../../../src/domain/store.ts'
import { newUpload } from '../../../contracts/assets/upload-store.ts'
import { newCall } from '../../../contracts/calls/call-store.ts'
import { at, START, Tenant } from '../../../contracts/store-under-test.ts'
import { withTwoNodes } from './temporary-store.ts'

const LIMITS: CallLimits = { maxCalls: 4, maxCostlyCalls: 4, ceilingMicros: null }
const BODY = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }

function withConnections(body: (connections: Connections, store: Store) => Promise<void>): Promise<void> {
  return withTwoNodes(async ({ stores: [store], url }) => {
    await using connections = openConnections({ url, log: silentLog })
    await body(connections, store)
  })
}

async function enqueue(store: Store, accountId: string): Promise<void> {
  const request = { ...newCall(accountId, { key: null }), body: BODY, bodyBytes: 2, holdMicros: null }
  const { outcome } = await store.requests.enqueue(request, { maxWaiting: 5, isValid: true })
  assert.equal(outcome, 'queued')
}

test('a take of a queued call that runs again finds the call that it took, and takes no second one', () =>
  withConnections(async (connections, store) => {
    const accountId = randomUUID()
    await enqueue(store, accountId)
    await enqueue(store, accountId)
    const requests = openShared(requestSteps, connections)
    const take = (until: Date) => requests.take(accountId, LIMITS, { now: START, lease: { owner: 'here', until } })
    const first = await take(at(50))
    assert.deepEqual(await take(at(50)), first)
    assert.notEqual((await take(at(51)))?.ref.id, first?.ref.id)
    assert.equal((await store.calls.standing(accountId)).runningCalls, 2)
  }))

test('takes of one moment have leases of their own, so that none finds what another took', () =>
  withConnections(async ({ read }, store) => {
    const accountId = randomUUID()
    for (let count = 0; count < 3; count += 1) await enqueue(store, accountId)
    const options = { now: START, lease: { owner: 'here', until: at(50) } }
    const taken = await Promise.all([0, 1, 2].map(() => store.requests.take(accountId, LIMITS, options)))
    assert.equal(new Set(taken.map((call) => call?.ref.id)).size, 3)
    const sql = `SELECT count(DISTINCT lease_until) AS ends FROM router_call WHERE state = 'running'`
    const ends = query('repeatedWrites.ends', shape({ ends: integer() }), postgresOnly(sql))
    assert.deepEqual(await read.all(ends), [{ ends: 3 }])
  }))

test('taking over lapsed calls again finds those that were taken', () =>
  withConnections(async (connections, store) => {
    const accountId = randomUUID()
    await enqueue(store, accountId)
    await store.requests.take(accountId, LIMITS, { now: START, lease: { owner: 'gone', until: at(50) } })
    const options = { lapsedBefore: at(100), ownLapsedBefore: START, except: [], limit: 5 }
    const calls = openShared(callSteps, connections)
    const take = (until: Date) => calls.takeLapsed({ ...options, lease: { owner: 'here', until } })
    const first = await take(at(500))
    assert.equal(first.length, 1)
    assert.deepEqual(await take(at(500)), first)
    assert.deepEqual(await take(at(501)), [])
  }))

test('a cancel that runs again is still the one that ended the job; a later one finds it ended', () =>
  withConnections(async ({ durable }, store) => {
    const tenant = await Tenant.create(store)
    const job = await tenant.submit()
    // As after a commit whose answer was lost.
    const transaction: typeof durable.transaction = async (body, options) => {
      await durable.transaction(body)
      return durable.transaction(body, options)
    }
    const { cancel } = createJobCancels({ durable: { ...durable, transaction } })
    assert.equal((await cancel(tenant.accountId, job.id, at(1))).outcome, 'canceled')
    assert.equal((await store.jobs.cancel(tenant.accountId, job.id, at(1))).outcome, 'already_terminal')
  }))

test('a cancel with a line of the audit log does not run again, because there would be two lines', () =>
  withConnections(async ({ durable }, store) => {
    const tenant = await Tenant.create(store)
    const job = await tenant.submit()
    // Whatever may be repeated is.
    const transaction: typeof durable.transaction = async (body, options) => {
      const result = await durable.transaction(body)
      return options?.isRepeatable === true ? durable.transaction(body, options) : result
    }
    const entry = { actor: 'somebody', action: 'job.cancel', subject: job.id, at: START, details: {} }
    const { cancel } = createJobCancels(toAuditedParts({ durable: { ...durable, transaction } }, entry))
    assert.equal((await cancel(tenant.accountId, job.id, at(1))).outcome, 'canceled')
    assert.equal((await store.audit.list({ limit: 10, before: null, subject: job.id })).length, 1)
  }))

const PID = query('repeatedWrites.pid', shape({ pid: integer() }), postgresOnly('SELECT pg_backend_pid() AS pid'))
// Returns once the other one is gone.
const END = command('repeatedWrites.end', postgresOnly('SELECT pg_terminate_backend(:pid::integer, 5000)'))

test('taking hold of an upload outlasts a connection that breaks', () =>
  withConnections(async (connections, store) => {
    const { relaxed, chore } = connections
    const tenant = await Tenant.create(store)
    const upload = newUpload(tenant)
    await store.uploads.create(upload, { maxCount: 1, maxBytes: null })
    let tries = 0
    const transaction: typeof relaxed.transaction = (body, options) =>
      relaxed.transaction(async (tx) => {
        tries += 1
        if (tries === 1) await chore.run(END, { pid: (await tx.get(PID))?.pid ?? 0 })
        return body(tx)
      }, options)
    const { hold } = openShared(uploadStore, { ...connections, relaxed: { ...relaxed, transaction } })
    const held = await hold(upload.id, { leaseId: 'mine', now: at(0), until: at(100), isAlone: false })
    assert.deepEqual(held, upload)
    assert.equal(tries, 2)
  }))
