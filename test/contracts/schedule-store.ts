/** How every store keeps schedules, and lets one process at a time deal with a time of theirs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { parseLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Schedule, ScheduleRun } from '../../src/domain/schedules/schedule.ts'
import {
  at,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
  withStore,
} from './store-under-test.ts'

const WORK = {
  endpoint: null,
  inputs: null,
  workflow: { '1': { class_type: 'A', inputs: {} } },
  metadata: {},
  priority: 3,
}

function newSchedule(accountId: string, fields: Partial<Schedule> = {}): Schedule {
  return {
    ...{ id: randomUUID(), accountId, keyId: 'key', name: 'nightly', cron: '0 2 * * *', timeZone: 'UTC' },
    ...{ overlap: 'skip', catchUp: 'none', pool: null, work: WORK, state: 'active', reason: null, nextAt: at(1000) },
    ...{ lastJobId: null, lastError: null, createdAt: START, changedAt: START },
    ...fields,
  }
}

function newRun(scheduleId: string, dueAt: Date, fields: Partial<ScheduleRun> = {}): ScheduleRun {
  return {
    ...{
      scheduleId,
      dueAt,
      isByHand: false,
      at: dueAt,
      outcome: 'submitted',
      jobId: randomUUID(),
      code: null,
      message: null,
    },
    ...fields,
  }
}

export function testScheduleStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('schedules', () => {
    const store = shareStore(opener)
    const schedules = () => store().schedules

    async function create(fields: Partial<Schedule> = {}): Promise<Schedule> {
      const { accountId } = await Tenant.create(store())
      const made = newSchedule(accountId, fields)
      assert.equal(await schedules().create(made, 100), true)
      return made
    }
    const take = ({ id, nextAt }: Schedule, tick: Date, now = tick, heldMs = 30_000) =>
      schedules().take({ id, nextAt: nextAt ?? tick, tick, now, heldUntil: new Date(now.getTime() + heldMs) })

    test('one is found as it was made, by its account alone', async () => {
      const made = await create({
        keyId: null,
        pool: 'gpu',
        reason: 'why',
        lastError: { code: 'c', message: 'm', at: 'a' },
      })
      assert.deepEqual(await schedules().find(made.accountId, made.id), made)
      assert.deepEqual(await schedules().list(made.accountId), [made])
      const other = randomUUID()
      assert.equal(await schedules().find(other, made.id), null)
      assert.deepEqual(await schedules().list(other), [])
      assert.deepEqual(await schedules().listRuns(other, made.id), [])
      assert.equal(await schedules().change(other, made.id, { name: 'mine' }), null)
      assert.equal(await schedules().remove(other, made.id), false)
      assert.deepEqual(await schedules().find(made.accountId, made.id), made)
    })

    test('numbers in a workflow keep their digits', async () => {
      const workflow = parseLosslessJson(
        '{"1":{"class_type":"A","inputs":{"seed":18446744073709551615}}}',
      ) as Schedule['work']['workflow']
      const made = await create({ work: { ...WORK, workflow } })
      assert.deepEqual((await schedules().find(made.accountId, made.id))?.work.workflow, workflow)
    })

    test('an account has at most as many as are allowed, also when they are made at once', async () => {
      const { accountId } = await Tenant.create(store())
      const made = await Promise.all(Array.from({ length: 6 }, () => schedules().create(newSchedule(accountId), 3)))
      assert.equal(made.filter(Boolean).length, 3)
      assert.equal((await schedules().list(accountId)).length, 3)
    })

    test('a change keeps what it does not name, and one that is removed takes its runs along', async () => {
      const made = await create()
      const changed = { ...made, name: 'weekly', state: 'paused' as const, nextAt: null, changedAt: at(5) }
      const { name, state, nextAt, changedAt } = changed
      assert.deepEqual(await schedules().change(made.accountId, made.id, { name, state, nextAt, changedAt }), changed)
      assert.deepEqual(await schedules().find(made.accountId, made.id), changed)
      await schedules().note(newRun(made.id, at(1), { isByHand: true }))
      assert.equal((await schedules().listRuns(made.accountId, made.id)).length, 1)
      assert.equal(await schedules().remove(made.accountId, made.id), true)
      assert.equal(await schedules().remove(made.accountId, made.id), false)
      assert.deepEqual(await schedules().listRuns(made.accountId, made.id), [])
      // A run that ends after the removal leaves nothing.
      await schedules().note(newRun(made.id, at(2)))
      assert.equal(await schedules().create(made, 100), true)
      assert.deepEqual(await schedules().listRuns(made.accountId, made.id), [])
    })

    test('one that is not active gets no time, whoever gives it one', async () => {
      const made = await create({ state: 'paused', nextAt: null })
      const changed = await schedules().change(made.accountId, made.id, { cron: '@daily', nextAt: at(9000) })
      assert.deepEqual([changed?.cron, changed?.nextAt], ['@daily', null])
      assert.deepEqual(await schedules().find(made.accountId, made.id), changed)
      const resumed = await schedules().change(made.accountId, made.id, { state: 'active', nextAt: at(9000) })
      assert.deepEqual(resumed?.nextAt, at(9000))
    })

    test('what is due is found, the longest due first, and not while a process holds it', async () => {
      await withStore(opener, async (own) => {
        const { accountId } = await Tenant.create(own)
        const [late, early, never, ahead] = [at(2000), at(1000), null, at(9000)].map((nextAt) =>
          newSchedule(accountId, { nextAt }),
        )
        for (const each of [late, early, never, ahead]) await own.schedules.create(each, 100)
        const findDue = (now: Date, { limit = 10, exceptAccounts = [] as string[] } = {}) =>
          own.schedules.findDue(now, { limit, exceptAccounts })
        assert.deepEqual(await findDue(at(3000)), [early, late])
        assert.deepEqual(await findDue(at(3000), { limit: 1 }), [early])
        const other = newSchedule((await Tenant.create(own)).accountId, { nextAt: at(2500) })
        await own.schedules.create(other, 100)
        assert.deepEqual(await findDue(at(3000), { exceptAccounts: ['nobody'] }), [early, late, other])
        assert.deepEqual(await findDue(at(3000), { limit: 1, exceptAccounts: ['nobody', accountId] }), [other])
        await own.schedules.remove(other.accountId, other.id)
        const wish = { id: early.id, nextAt: at(1000), tick: at(1000), now: at(3000), heldUntil: at(5000) }
        assert.notEqual(await own.schedules.take(wish), null)
        assert.deepEqual(await findDue(at(4999)), [late])
        assert.deepEqual(await findDue(at(5000)), [early, late])
      })
    })

    test('of processes that take the same time at once one gets it', async () => {
      const made = await create()
      const taken = await Promise.all(Array.from({ length: 8 }, () => take(made, at(1000))))
      const won = taken.filter((each) => each !== null)
      assert.equal(won.length, 1)
      assert.deepEqual(won[0], { schedule: made, tick: at(1000), takenBefore: null, hasWaited: false })
    })

    test('a time whose process died is taken up as it was, whatever is due by then', async () => {
      const made = await create()
      await take(made, at(1000))
      assert.equal(await take(made, at(60_000), at(20_000)), null)
      const again = await take(made, at(60_000))
      assert.deepEqual([again?.tick, again?.takenBefore], [at(1000), at(1000)])
    })

    test('an end frees the schedule for its next time, notes what became of this one, and is made once', async () => {
      const made = await create()
      await take(made, at(1000))
      const run = newRun(made.id, at(1000))
      const end = {
        id: made.id,
        nextAt: at(1000),
        goesOn: at(2000),
        runs: [run],
        lastError: null,
        jobId: run.jobId ?? '',
      }
      await schedules().end(end)
      await schedules().end(end)
      const ended = { ...made, nextAt: at(2000), lastJobId: run.jobId }
      assert.deepEqual(await schedules().find(made.accountId, made.id), ended)
      assert.deepEqual(await schedules().listRuns(made.accountId, made.id), [run])
      assert.equal(await take(made, at(1000)), null)
      const next = await take(ended, at(2000))
      assert.deepEqual([next?.tick, next?.takenBefore], [at(2000), null])
    })

    test('an end takes back no change that was made meanwhile, and still says what was submitted', async () => {
      const made = await create()
      await take(made, at(1000))
      await schedules().change(made.accountId, made.id, { state: 'paused', nextAt: null })
      const run = newRun(made.id, at(1000), { jobId: 'job' })
      await schedules().end({
        id: made.id,
        nextAt: at(1000),
        goesOn: at(2000),
        runs: [run],
        lastError: null,
        jobId: 'job',
      })
      const found = await schedules().find(made.accountId, made.id)
      assert.deepEqual([found?.state, found?.nextAt, found?.lastJobId], ['paused', null, 'job'])
      assert.deepEqual(await schedules().listRuns(made.accountId, made.id), [run])
    })

    test('one that waits for its run before takes whatever time is due by then', async () => {
      const made = await create()
      await take(made, at(1000))
      await schedules().putOff(made.id, at(1000), { until: at(6000), isWaiting: true })
      assert.equal(await take(made, at(5000)), null)
      const again = await take(made, at(6000))
      assert.deepEqual([again?.tick, again?.takenBefore, again?.hasWaited], [at(6000), null, true])
      await schedules().putOff(made.id, at(1000), { until: at(7000), isWaiting: false })
      const tried = await take(made, at(7000))
      assert.deepEqual([tried?.tick, tried?.takenBefore, tried?.hasWaited], [at(6000), at(6000), true])
    })

    test('one that is stopped says why and has no next time', async () => {
      const made = await create()
      const lastError = { code: 'unauthorized', message: 'revoked', at: 'then' }
      await schedules().end({ id: made.id, nextAt: at(1000), goesOn: { stoppedFor: 'revoked' }, runs: [], lastError })
      const stopped = { ...made, state: 'stopped', reason: 'revoked', nextAt: null, lastError }
      assert.deepEqual(await schedules().find(made.accountId, made.id), stopped)
    })

    test('the last fifty runs are kept', async () => {
      const made = await create()
      for (let each = 0; each < 53; each += 1) await schedules().note(newRun(made.id, at(each)))
      const runs = await schedules().listRuns(made.accountId, made.id)
      assert.deepEqual(
        runs.map(({ dueAt }) => dueAt.getTime() - START.getTime()),
        Array.from({ length: 50 }, (_, index) => 52 - index),
      )
    })
  })
}
