import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { createLeadership } from '../../service-nodes/leadership.ts'
import { createHousekeeping } from './housekeeping.ts'

test('a chore never overlaps itself and goes on after a failure', async () => {
  let active = 0
  let most = 0
  let runs = 0
  const enough = Promise.withResolvers<void>()
  await using house = createHousekeeping({
    log: silentLog,
    random: () => 0,
    tasks: [
      {
        name: 'slow',
        runs: 'each',
        everyMs: 1,
        async run() {
          most = Math.max(most, ++active)
          await new Promise((resolve) => setTimeout(resolve, 5))
          active--
          if (++runs === 4) enough.resolve()
          if (runs === 2) throw new Error('once')
        },
      },
    ],
  })
  house.start()
  house.start()
  await enough.promise
  assert.equal(most, 1)
})

test('ending waits for the chore under way and starts no other', async () => {
  const started = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  let isDone = false
  let isTold = false
  const house = createHousekeeping({
    log: silentLog,
    tasks: [
      {
        name: 'one',
        runs: 'once',
        everyMs: 1,
        async run(signal) {
          started.resolve()
          await finish.promise
          isTold = signal.aborted
          isDone = true
        },
      },
      { name: 'never', runs: 'each', everyMs: 1_000_000, run: () => assert.fail('its time has not come') },
    ],
  })
  house.start()
  await started.promise
  const ended = house[Symbol.asyncDispose]()
  assert.equal(isDone, false)
  finish.resolve()
  await ended
  assert.ok(isDone && isTold)
  house.start()
})

test('chores of the service run while this process leads, and are told when it no longer does; its own run always', async () => {
  const clock = createFixedClock()
  const leadership = createLeadership({ name: 'housekeeping', clock, forMs: 15_000 })
  const beat = async (isHeld: boolean) => {
    const wanted = (await leadership.want()) ?? assert.fail('it always wants to lead')
    leadership.told(wanted, isHeld)
  }
  const began = Promise.withResolvers<AbortSignal>()
  const finish = Promise.withResolvers<void>()
  let runs = 0
  let onOwnRun = () => {}
  const nextOwnRun = () =>
    new Promise<void>((resolve) => {
      onOwnRun = resolve
    })
  await using house = createHousekeeping({
    log: silentLog,
    leadership,
    random: () => 0,
    tasks: [
      {
        name: 'of the service',
        runs: 'once',
        everyMs: 1,
        async run(signal) {
          runs++
          began.resolve(signal)
          await finish.promise
        },
      },
      {
        name: 'of the process',
        runs: 'each',
        everyMs: 1,
        run: async () => onOwnRun(),
      },
    ],
  })
  house.start()
  await nextOwnRun()
  await nextOwnRun()
  assert.equal(runs, 0, 'somebody else may lead')
  await beat(true)
  const signal = await began.promise
  assert.equal(signal.aborted, false)
  await beat(false)
  assert.equal(signal.aborted, true)
  finish.resolve()
  await nextOwnRun()
  await nextOwnRun()
  assert.equal(runs, 1)
})
