import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
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
        everyMs: 1,
        async run(signal) {
          started.resolve()
          await finish.promise
          isTold = signal.aborted
          isDone = true
        },
      },
      { name: 'never', everyMs: 1_000_000, run: () => assert.fail('its time has not come') },
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
