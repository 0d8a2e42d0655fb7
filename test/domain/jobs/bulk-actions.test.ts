/** How many jobs are dealt with, over a real store and with deeds that can be made to fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUuidV7, newUuidV4 } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log.ts'
import type { Authority } from '../../../src/domain/accounts/keys/authority.ts'
import { type Refusal, ServiceError } from '../../../src/domain/errors.ts'
import type { BulkKind } from '../../../src/domain/jobs/bulk/bulk-action.ts'
import { createBulkActions } from '../../../src/domain/jobs/bulk/manage-bulk.ts'
import { createRunBulk } from '../../../src/domain/jobs/bulk/run-bulk.ts'
import type { Job } from '../../../src/domain/jobs/job.ts'
import { withSqlite } from '../../adapters/store/sqlite/temporary-store.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const newJobId = createUuidV7(() => 0)

interface Rig {
  readonly clock: ReturnType<typeof createFixedClock>
  /** What was done, in its order: the deed and the job. */
  readonly deeds: string[]
  /** By key, the jobs that reruns have made. */
  readonly made: Map<string, string>
  /** What a job's deed is refused with; called for each try. */
  refuse: (jobId: string) => Refusal | null
  withdrawn: Awaited<ReturnType<Authority>>
  /** The process is gone before it notes what it did. */
  diesBeforeNote: boolean
  run(): Promise<number>
  create(kind: BulkKind, count: number): Promise<string>
  read(id: string): Promise<string>
  stop(id: string): Promise<unknown>
}

function withRig(body: (rig: Rig) => Promise<void>): Promise<void> {
  return withSqlite({}, async (store) => {
    await store.accounts.put({ id: 'ada', maxRunning: 1, maxQueued: 10 })
    const clock = createFixedClock(new Date('2026-03-03T12:00:00Z'))
    const act = (deed: string, jobId: string) => {
      const refusal = rig.refuse(jobId)
      if (refusal !== null) throw new ServiceError(refusal, `it is ${refusal}`)
      rig.deeds.push(`${deed} ${jobId}`)
    }
    const actions = createBulkActions({
      ...{ store: store.bulkActions, newId: newUuidV4, clock, onCreated() {} },
      select: async (_, { of }) => ({
        jobs: ('jobIds' in of ? of.jobIds : []).map((id) => ({ id, accountId: 'ada', outputs: 1 })),
        hasMore: false,
      }),
    })
    const run = createRunBulk({
      ...{ newId: newUuidV4, clock, log: silentLog, mayRun: async () => rig.withdrawn },
      store: {
        ...store.bulkActions,
        async note(...args) {
          if (rig.diesBeforeNote) throw new Error('gone')
          return store.bulkActions.note(...args)
        },
      },
      audited: () => store,
      async cancel(_account, jobId) {
        act('cancel', jobId)
        return { status: 'canceled' } as Job
      },
      queue: {
        async change(_account, jobId, { place }) {
          act(JSON.stringify(place), jobId)
          return {} as Job
        },
      },
      async rerun({ jobId, idempotencyKey }) {
        const known = rig.made.get(idempotencyKey ?? '')
        const details = { jobId: known }
        if (known !== undefined) throw new ServiceError('idempotency_key_reuse', 'known', { details })
        act('rerun', jobId)
        const id = newJobId()
        rig.made.set(idempotencyKey ?? '', id)
        return { id } as Job
      },
    })
    const rig: Rig = {
      ...{ clock, deeds: [], made: new Map(), refuse: () => null, withdrawn: null },
      diesBeforeNote: false,
      run: () => run(),
      async create(kind, count) {
        const jobIds = Array.from({ length: count }, () => newJobId())
        const wish = { kind, isOnlyWaiting: false, of: { jobIds }, asked: { jobIds: count } }
        const asker = { owner: 'ada', keyId: 'k1', actor: null }
        const options = { idempotencyKey: null }
        return (await actions.create(asker, { ...wish, priority: kind === 'prioritize' ? 7 : null }, options)).id
      },
      async read(id) {
        const { state, done, skipped, refused, total, reason } = await actions.find('ada', id)
        return [state, `${done}+${skipped}+${refused}/${total}`, reason?.code].filter(Boolean).join(' ')
      },
      stop: (id) => actions.stop('ada', id),
    }
    await body(rig)
  })
}

test('each job has the deed done to it, in their order and once', () =>
  withRig(async (rig) => {
    const kinds = ['cancel', 'prioritize', 'rerun'] as const
    for (const kind of kinds) {
      const id = await rig.create(kind, 120)
      await rig.run()
      assert.equal(await rig.read(id), 'done 120+0+0/120')
    }
    assert.equal(rig.deeds.length, 360)
    assert.equal(new Set(rig.deeds).size, 360)
    assert.deepEqual(
      [0, 120, 240].map((at) => rig.deeds[at]?.split(' ')[0]),
      ['cancel', '{"priority":7}', 'rerun'],
    )
    await rig.run()
    assert.equal(rig.deeds.length, 360)
  }))

test('what a process had done and not noted when it ended is found by the next one: no job is run again twice', () =>
  withRig(async (rig) => {
    const id = await rig.create('rerun', 100)
    rig.diesBeforeNote = true
    await assert.rejects(rig.run(), /gone/)
    assert.equal(await rig.read(id), 'working 0+0+0/100')
    assert.ok(rig.made.size > 0)
    rig.diesBeforeNote = false
    // Held for the process that died.
    assert.equal(await rig.run(), 0)
    rig.clock.advance(11 * SECOND_MS)
    await rig.run()
    assert.equal(await rig.read(id), 'done 100+0+0/100')
    assert.deepEqual([rig.deeds.length, rig.made.size], [100, 100])
  }))

test('jobs that are gone or cannot be changed any more are left out, and refusals are told', () =>
  withRig(async (rig) => {
    const id = await rig.create('prioritize', 3)
    const refusals: Refusal[] = ['not_found', 'not_waiting', 'forbidden']
    rig.refuse = () => refusals.shift() ?? null
    await rig.run()
    assert.equal(await rig.read(id), 'done 0+2+1/3')
  }))

test('a full queue and an empty purse are waited for, and told meanwhile', () =>
  withRig(async (rig) => {
    const id = await rig.create('rerun', 2)
    rig.refuse = () => 'queue_full'
    assert.equal(await rig.run(), 1)
    assert.equal(await rig.read(id), 'working 0+0+0/2 queue_full')
    rig.clock.advance(4 * SECOND_MS)
    assert.equal(await rig.run(), 0)
    rig.refuse = () => 'insufficient_credits'
    rig.clock.advance(2 * SECOND_MS)
    await rig.run()
    assert.equal(await rig.read(id), 'working 0+0+0/2 insufficient_credits')
    rig.refuse = () => null
    rig.clock.advance(30 * SECOND_MS)
    assert.equal(await rig.run(), 0)
    rig.clock.advance(31 * SECOND_MS)
    await rig.run()
    assert.equal(await rig.read(id), 'done 2+0+0/2')
  }))

test('before keys of submits are forgotten it ends, and says that some are left', () =>
  withRig(async (rig) => {
    const id = await rig.create('rerun', 2)
    rig.refuse = () => 'queue_full'
    await rig.run()
    rig.refuse = () => null
    rig.clock.advance(22 * HOUR_MS + SECOND_MS)
    await rig.run()
    assert.equal(await rig.read(id), 'stopped 0+0+0/2 timeout')
    assert.deepEqual(rig.deeds, [])
  }))

test('it stops when the key of whoever asked is withdrawn, and waits while the account is suspended', () =>
  withRig(async (rig) => {
    const id = await rig.create('cancel', 2)
    rig.withdrawn = { code: 'forbidden', message: 'suspended', isForGood: false }
    await rig.run()
    assert.equal(await rig.read(id), 'working 0+0+0/2 forbidden')
    rig.withdrawn = { code: 'unauthorized', message: 'revoked', isForGood: true }
    rig.clock.advance(61 * SECOND_MS)
    await rig.run()
    assert.equal(await rig.read(id), 'stopped 0+0+0/2 unauthorized')
  }))

test('one that is stopped leaves the other jobs as they are', () =>
  withRig(async (rig) => {
    const id = await rig.create('cancel', 2)
    await rig.stop(id)
    assert.equal(await rig.run(), 0)
    assert.equal(await rig.read(id), 'stopped 0+0+0/2 stopped')
    assert.deepEqual(rig.deeds, [])
  }))

test('a long one does not keep a short one waiting', () =>
  withRig(async (rig) => {
    const long = await rig.create('cancel', 1100)
    rig.clock.advance(1)
    const short = await rig.create('prioritize', 1)
    await rig.run()
    assert.deepEqual([await rig.read(long), await rig.read(short)], ['done 1100+0+0/1100', 'done 1+0+0/1'])
    assert.ok(rig.deeds.findIndex((deed) => deed.startsWith('{')) < 1000)
  }))
