/** What a process shows of a job that another one changed, when no notice of the change has come. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../../lib/log.ts'
import { createLocalBus } from '../../../../../src/adapters/bus/local.ts'
import { createJobReader, type JobReader } from '../../../../../src/domain/jobs/read/job-reader.ts'
import type { Store } from '../../../../../src/domain/store.ts'
import { at, START, Tenant } from '../../../../contracts/store-under-test.ts'
import { createFixedClock } from '../../../../support/fixed-clock.ts'
import { withTwoNodes } from '../temporary-store.ts'

/** Hears nothing of what another process writes. */
function openReader({ jobs }: Store): JobReader {
  return createJobReader({
    store: jobs,
    bus: createLocalBus<never>({ log: silentLog }),
    clock: createFixedClock(START),
  })
}

test('a job that was seen to end in one process is not seen alive in another, though no notice has come', () =>
  withTwoNodes(async ({ stores: [here, there] }) => {
    const tenant = await Tenant.create(there)
    const job = await tenant.submit()
    const [one, other] = [openReader(here), openReader(there)]
    assert.equal((await one.find(tenant.accountId, job.id)).status, 'queued')
    await there.jobs.cancel(tenant.accountId, job.id, at(1))
    assert.equal((await other.find(tenant.accountId, job.id)).status, 'canceled')
    assert.equal(one.peek(tenant.accountId, job.id), undefined)
    assert.equal((await one.find(tenant.accountId, job.id)).status, 'canceled')
  }))

test('a read that began before a change is not shared with whoever knows of the change', () =>
  withTwoNodes(async ({ stores: [here, there] }) => {
    const tenant = await Tenant.create(there)
    const job = await tenant.submit()
    const held = Promise.withResolvers<void>()
    let reads = 0
    const slow: Store = {
      ...here,
      jobs: {
        ...here.jobs,
        async find(...asked) {
          const found = await here.jobs.find(...asked)
          reads += 1
          if (reads === 1) await held.promise
          return found
        },
      },
    }
    const reader = openReader(slow)
    const early = reader.find(tenant.accountId, job.id)
    while (reads === 0) await new Promise((resolve) => setImmediate(resolve))
    await there.jobs.cancel(tenant.accountId, job.id, at(1))
    assert.equal((await reader.find(tenant.accountId, job.id)).status, 'canceled')
    held.resolve()
    assert.equal((await early).status, 'queued')
    assert.equal((await reader.find(tenant.accountId, job.id)).status, 'canceled')
  }))

test('a running job is served from memory while the store has the same version', () =>
  withTwoNodes(async ({ stores: [here, there] }) => {
    const tenant = await Tenant.create(there)
    const { job, lease } = await tenant.run()
    let reads = 0
    const counted: Store = {
      ...here,
      jobs: {
        ...here.jobs,
        find(...asked) {
          reads += 1
          return here.jobs.find(...asked)
        },
      },
    }
    const reader = openReader(counted)
    for (let count = 0; count < 3; count += 1) {
      assert.equal((await reader.find(tenant.accountId, job.id)).status, 'running')
    }
    assert.equal(reads, 1)
    await tenant.succeed(lease)
    assert.equal((await reader.find(tenant.accountId, job.id)).status, 'succeeded')
    assert.equal(reader.peek(tenant.accountId, job.id)?.status, 'succeeded')
  }))
