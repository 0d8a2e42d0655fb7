import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFollowedClock } from './followed-clock.ts'

const START = new Date('2026-01-01T00:00:00.000Z')
const after = (ms: number) => new Date(START.getTime() + ms)

/** A machine whose monotonic clock is moved by hand, and another one with a time of its own. */
function createMachines() {
  let monotonicMs = 5000
  let otherMs = START.getTime()
  const pass = (ms: number) => {
    monotonicMs += ms
    otherMs += ms
  }
  return {
    pass,
    monotonicMs: () => monotonicMs,
    jump: (ms: number) => {
      otherMs += ms
    },
    /** Reads the other time after `wayMs`, and answers after as much again. */
    read: (wayMs: number) => async () => {
      pass(wayMs)
      const read = new Date(otherMs)
      pass(wayMs)
      return read
    },
  }
}

test('shows the other time, and goes on by the monotonic clock between two samples', async () => {
  const machines = createMachines()
  const clock = createFollowedClock(new Date(0), { monotonicMs: machines.monotonicMs })
  assert.deepEqual(clock.now(), new Date(0))
  await clock.sample(machines.read(20))
  assert.deepEqual(clock.now(), after(40))
  machines.pass(1000)
  assert.deepEqual(clock.now(), after(1040))
})

test('a sample that took long is dropped', async () => {
  const machines = createMachines()
  const clock = createFollowedClock(START, { monotonicMs: machines.monotonicMs })
  await clock.sample(machines.read(1))
  machines.jump(60_000)
  await clock.sample(machines.read(51))
  assert.deepEqual([clock.now(), clock.driftMs()], [after(104), 0])
  await clock.sample(machines.read(50))
  assert.deepEqual(clock.now(), after(60_204))
})

test('the first sample sets it, also back; later ones never turn it back, and tell by how much they differ', async () => {
  const machines = createMachines()
  const clock = createFollowedClock(after(3_600_000), { monotonicMs: machines.monotonicMs })
  clock.now()
  await clock.sample(machines.read(0))
  assert.deepEqual([clock.now(), clock.driftMs()], [START, 0])
  machines.pass(10_000)
  assert.deepEqual(clock.now(), after(10_000))
  machines.jump(-3000)
  await clock.sample(machines.read(5))
  assert.deepEqual([clock.now(), clock.driftMs()], [after(10_000), 2995])
  machines.pass(2989)
  assert.deepEqual(clock.now(), after(10_000))
  machines.pass(10)
  assert.deepEqual(clock.now(), after(10_009))
  await clock.sample(machines.read(0))
  assert.equal(clock.driftMs(), 0)
})

test('a failed read changes nothing', async () => {
  const clock = createFollowedClock(START, { monotonicMs: () => 7 })
  await assert.rejects(() => clock.sample(() => Promise.reject(new Error('away'))))
  assert.deepEqual([clock.now(), clock.driftMs()], [START, 0])
})
