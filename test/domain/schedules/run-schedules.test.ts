/** When schedules submit, and what they note, over a real store and with submits that can be made to fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import type { Authority } from '../../../src/domain/accounts/keys/authority.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { Job } from '../../../src/domain/jobs/job.ts'
import { createSchedules, type ScheduleWish } from '../../../src/domain/schedules/manage-schedules.ts'
import { createRunSchedules } from '../../../src/domain/schedules/run-schedules.ts'
import type { ScheduleStore } from '../../../src/domain/schedules/schedule-store.ts'
import type { SubmitScheduled } from '../../../src/domain/schedules/submit-scheduled.ts'
import { withSqlite } from '../../adapters/store/sqlite/temporary-store.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MINUTE_MS = 60_000
const OWNER = { accountId: 'ada', keyId: 'k1', scopes: null, endpoints: null, pool: null }
const WISH: ScheduleWish = {
  ...{ name: 'nightly', cron: '*/10 * * * *', timeZone: 'UTC', overlap: 'skip', catchUp: 'none' },
  work: { endpoint: null, inputs: null, workflow: {}, metadata: {}, priority: 0 },
}

interface Rig {
  readonly clock: ReturnType<typeof createFixedClock>
  /** By key, in the order of the submits. */
  readonly jobs: Map<string, string>
  readonly live: Set<string>
  readonly canceled: string[]
  readonly submits: string[]
  refusal: Error | null
  withdrawn: Awaited<ReturnType<Authority>>
  /** The job is recorded, and then the process is gone. */
  diesAfterSubmit: boolean
  /** The job is recorded, and the store does not say so. */
  lostAnswer: boolean
  /** What submits of an account wait for, before they are made. */
  readonly gates: Map<string, Promise<void>>
  /** Comes between what a change looks at and what it writes. */
  between: (() => Promise<unknown>) | null
  readonly schedules: ReturnType<typeof createSchedules>
  run(): Promise<number>
  make(wish?: Partial<ScheduleWish>): Promise<string>
  /** Of the runs of a schedule, the oldest first: when, what, and why. */
  told(id: string): Promise<string[]>
}

function withRig(body: (rig: Rig) => Promise<void>): Promise<void> {
  return withSqlite({}, async (store) => {
    await store.accounts.put({ id: 'ada', maxRunning: 1, maxQueued: 10 })
    const clock = createFixedClock(new Date('2026-03-03T12:00:30Z'))
    const submit: SubmitScheduled = async ({ accountId }, key) => {
      rig.submits.push(key ?? '')
      await rig.gates.get(accountId)
      if (rig.refusal !== null) throw rig.refusal
      const id = rig.jobs.get(key ?? '') ?? `job ${rig.jobs.size + 1}`
      rig.jobs.set(key ?? '', id)
      rig.live.add(id)
      if (rig.diesAfterSubmit) throw new Error('gone')
      if (rig.lostAnswer) throw new ServiceError('store_unavailable', 'the answer is lost')
      return id
    }
    const looked: ScheduleStore = {
      ...store.schedules,
      async find(accountId, id) {
        const found = await store.schedules.find(accountId, id)
        const act = rig.between
        rig.between = null
        await act?.()
        return found
      },
    }
    const schedules = createSchedules({ store: looked, submit, tryOut: async () => {}, clock })
    const find = async (_: string, id: string) => ({ status: rig.live.has(id) ? 'running' : 'succeeded' }) as Job
    const run = createRunSchedules({
      ...{ store: store.schedules, submit, clock, log: silentLog, jobs: { find } },
      mayRun: async () => rig.withdrawn,
      async cancel(_account, id) {
        rig.canceled.push(id)
        return {} as Job
      },
    })
    const rig: Rig = {
      ...{ clock, jobs: new Map(), live: new Set(), canceled: [], submits: [], refusal: null, withdrawn: null },
      ...{ diesAfterSubmit: false, lostAnswer: false, gates: new Map(), between: null, schedules },
      run: () => run(),
      make: async (wish = {}) => (await schedules.create(OWNER, { ...WISH, ...wish })).id,
      async told(id) {
        const runs = (await schedules.listRuns('ada', id)).toReversed()
        return runs.map(({ dueAt, outcome, jobId, message }) =>
          [dueAt.toISOString().slice(11, 16), outcome, jobId ?? message].join(' '),
        )
      },
    }
    await body(rig)
  })
}

const passMinutes = ({ clock }: Rig, minutes: number) => clock.advance(minutes * MINUTE_MS)

test('each time is submitted once, and nothing before it', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    assert.equal(await rig.run(), 0)
    passMinutes(rig, 9.5)
    assert.deepEqual([await rig.run(), await rig.run()], [1, 0])
    rig.live.clear()
    passMinutes(rig, 10)
    await rig.run()
    assert.deepEqual(await rig.told(id), ['12:10 submitted job 1', '12:20 submitted job 2'])
    assert.equal((await rig.schedules.find('ada', id)).nextAt?.toISOString(), '2026-03-03T12:30:00.000Z')
  }))

test('a process that dies after its submit leaves a time that is found under its key', () =>
  withRig(async (rig) => {
    const id = await rig.make({ overlap: 'cancel_previous' })
    passMinutes(rig, 10)
    rig.diesAfterSubmit = true
    await rig.run()
    rig.diesAfterSubmit = false
    // Held for the process that died.
    assert.equal(await rig.run(), 0)
    // By then the next time is due, too.
    passMinutes(rig, 10)
    assert.deepEqual([await rig.run(), await rig.run()], [2, 0])
    assert.deepEqual(await rig.told(id), ['12:10 submitted job 1', '12:20 submitted job 2'])
    assert.deepEqual([rig.jobs.size, rig.submits.length, rig.canceled], [2, 3, ['job 1']])
  }))

test('of a submit that nobody can find again nothing is claimed, and it is not made twice', () =>
  withRig(async (rig) => {
    const id = await rig.make({ catchUp: 'one' })
    passMinutes(rig, 10)
    rig.diesAfterSubmit = true
    await rig.run()
    rig.diesAfterSubmit = false
    passMinutes(rig, 24 * 60)
    await rig.run()
    const [first] = await rig.told(id)
    assert.match(first, /^12:10 unknown the process that dealt with it ended/)
    assert.equal(rig.submits[0] === rig.submits[1], false)
  }))

test('times that nobody was there for are missed, up to a grace, or made up for by one run', () =>
  withRig(async (rig) => {
    const [none, one] = [await rig.make(), await rig.make({ catchUp: 'one' })]
    passMinutes(rig, 56)
    await rig.run()
    const why = 'the service was not there'
    const before = `12:10 missed ${why}, from then until 2026-03-03T12:40:00.000Z`
    assert.deepEqual(await rig.told(none), [before, `12:50 missed ${why} in time`])
    assert.deepEqual(await rig.told(one), [before, '12:50 submitted job 1'])
    rig.live.clear()
    // Within the grace even without catching up.
    passMinutes(rig, 8)
    await rig.run()
    assert.equal((await rig.told(none)).at(-1), '13:00 submitted job 2')
    rig.live.clear()
    passMinutes(rig, 8 * 24 * 60 - 4)
    const daily = await rig.make({ cron: '0 6 * * *', catchUp: 'one' })
    passMinutes(rig, 8 * 24 * 60)
    await rig.run()
    assert.equal((await rig.told(daily)).at(-1)?.slice(0, 15), '06:00 submitted')
  }))

test('while the run before goes on a time is skipped, or waits for its end, or ends it', () =>
  withRig(async (rig) => {
    const skips = await rig.make()
    const queues = await rig.make({ overlap: 'queue' })
    const cancels = await rig.make({ overlap: 'cancel_previous' })
    passMinutes(rig, 10)
    await rig.run()
    passMinutes(rig, 10)
    await rig.run()
    const [mine] = (await rig.told(queues)).map((line) => line.slice(16))
    assert.equal((await rig.told(skips)).at(-1), '12:20 skipped the run before still went on')
    assert.equal(rig.canceled.length, 1)
    assert.equal((await rig.told(cancels)).length, 2)
    assert.equal((await rig.told(queues)).length, 1)
    // Two more times come by: when the run ends, the last of them is submitted, for all.
    passMinutes(rig, 21)
    await rig.run()
    assert.equal((await rig.told(queues)).length, 1)
    rig.live.delete(mine)
    passMinutes(rig, 1)
    await rig.run()
    const [, skipped, submitted] = await rig.told(queues)
    assert.equal(skipped, '12:20 skipped a run before still went on, from then until 2026-03-03T12:30:00.000Z')
    assert.match(submitted, /^12:40 submitted/)
  }))

test('submits of one account that take their time hold up no other account', () =>
  withRig(async (rig) => {
    const eve = { ...OWNER, accountId: 'eve' }
    for (let each = 0; each < 20; each += 1) await rig.schedules.create(eve, WISH)
    const id = await rig.make()
    const gate = Promise.withResolvers<void>()
    rig.gates.set('eve', gate.promise)
    passMinutes(rig, 10)
    const running = rig.run()
    await waitUntil(async () => (await rig.told(id)).length === 1)
    assert.deepEqual([rig.submits.length, rig.jobs.size], [3, 1])
    gate.resolve()
    await running
    assert.equal(rig.jobs.size, 21)
  }))

test('a time that had waited is not given up for a later one once its submit was tried', () =>
  withRig(async (rig) => {
    const id = await rig.make({ overlap: 'queue' })
    passMinutes(rig, 10)
    await rig.run()
    passMinutes(rig, 10)
    await rig.run()
    rig.live.clear()
    passMinutes(rig, 1)
    // The job is recorded, and the store is gone before it says so.
    rig.lostAnswer = true
    await rig.run()
    rig.lostAnswer = false
    // By now the next time is due, too.
    passMinutes(rig, 4)
    rig.clock.advance(5 * MINUTE_MS - 1)
    await rig.run()
    assert.deepEqual((await rig.told(id)).slice(0, 2), ['12:10 submitted job 1', '12:20 submitted job 2'])
    assert.equal(rig.jobs.size, 2)
  }))

test('a submit that fails for a reason of the service is tried again for some minutes, and then told', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    passMinutes(rig, 10)
    rig.refusal = new TypeError('a defect')
    for (let minute = 0; minute < 7; minute += 1) {
      await rig.run()
      passMinutes(rig, 1)
    }
    assert.deepEqual(await rig.told(id), ['12:10 unknown the service failed while it submitted; its log says why'])
    const { lastError, nextAt } = await rig.schedules.find('ada', id)
    assert.deepEqual([lastError?.code, nextAt?.toISOString()], ['internal_error', '2026-03-03T12:20:00.000Z'])
  }))

test('of a pause and another change at the same moment, neither undoes the other', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    const pause = () => rig.schedules.pause('ada', id, null)
    rig.between = pause
    const changed = await rig.schedules.change(OWNER, id, { cron: '@hourly' })
    assert.deepEqual([changed.cron, changed.state, changed.nextAt], ['@hourly', 'paused', null])
    await rig.schedules.resume(OWNER, id)
    rig.between = pause
    const resumed = await rig.schedules.resume(OWNER, id)
    assert.deepEqual([resumed.state, resumed.nextAt], ['paused', null])
  }))

test('what may pass is tried again for some minutes, and what stays wrong is told until a run succeeds', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    passMinutes(rig, 10)
    rig.refusal = new ServiceError('queue_full', 'full')
    await rig.run()
    assert.deepEqual(await rig.told(id), [])
    rig.refusal = null
    rig.clock.advance(5000)
    await rig.run()
    assert.deepEqual(await rig.told(id), ['12:10 submitted job 1'])
    rig.live.clear()
    passMinutes(rig, 10)
    rig.refusal = new ServiceError('queue_full', 'full')
    for (let minute = 0; minute < 6; minute += 1) {
      await rig.run()
      passMinutes(rig, 1)
    }
    assert.equal((await rig.told(id)).at(-1), '12:20 failed full')
    assert.equal((await rig.schedules.find('ada', id)).lastError?.code, 'queue_full')
    passMinutes(rig, 5)
    rig.refusal = new ServiceError('invalid_workflow', 'no such node')
    await rig.run()
    assert.equal((await rig.told(id)).at(-1), '12:30 failed no such node')
    passMinutes(rig, 9)
    rig.refusal = null
    await rig.run()
    assert.equal((await rig.schedules.find('ada', id)).lastError, null)
  }))

test('a suspended account submits nothing until it is active; a revoked key stops the schedule until it is resumed', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    passMinutes(rig, 10)
    rig.withdrawn = { code: 'forbidden', message: 'the account is suspended', isForGood: false }
    await rig.run()
    rig.withdrawn = { code: 'unauthorized', message: 'the key k1 was revoked', isForGood: true }
    passMinutes(rig, 10)
    await rig.run()
    assert.deepEqual(await rig.told(id), [
      '12:10 skipped the account is suspended',
      '12:20 failed the key k1 was revoked',
    ])
    const { state, reason, nextAt, lastError } = await rig.schedules.find('ada', id)
    assert.deepEqual(
      [state, reason, nextAt, lastError?.code],
      ['stopped', 'the key k1 was revoked', null, 'unauthorized'],
    )
    passMinutes(rig, 10)
    assert.equal(await rig.run(), 0)
    rig.withdrawn = null
    const resumed = await rig.schedules.resume({ ...OWNER, keyId: 'k2' }, id)
    assert.deepEqual([resumed.state, resumed.keyId, resumed.reason], ['active', 'k2', null])
    passMinutes(rig, 10)
    await rig.run()
    assert.equal((await rig.told(id)).at(-1), '12:40 submitted job 1')
  }))

test('a paused schedule lets its times go by; a run by hand is noted beside them', () =>
  withRig(async (rig) => {
    const id = await rig.make()
    await rig.schedules.pause('ada', id, 'holidays')
    passMinutes(rig, 30)
    assert.equal(await rig.run(), 0)
    assert.equal(await rig.schedules.runNow(OWNER, id, 'mine'), 'job 1')
    await rig.schedules.resume(OWNER, id)
    passMinutes(rig, 10)
    // The run by hand still goes on.
    await rig.run()
    assert.deepEqual(await rig.told(id), ['12:30 submitted job 1', '12:40 skipped the run before still went on'])
  }))
