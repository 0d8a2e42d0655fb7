import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createSemaphore } from './semaphore.ts'
import { createBackoff, createDoorbell, settlesWithin, sleep } from './sleep.ts'

test('a sleep ends early when its signal is aborted, also when it was aborted before', async () => {
  const ending = new AbortController()
  const sleeping = sleep(1_000_000, ending.signal)
  ending.abort()
  await sleeping
  await sleep(1_000_000, ending.signal)
})

test('settlesWithin tells whether work ended in time, however it ended', async () => {
  assert.equal(await settlesWithin(Promise.resolve(), 1000), true)
  assert.equal(await settlesWithin(Promise.reject(new Error('x')), 1000), true)
  assert.equal(await settlesWithin(new Promise(() => {}), 1), false)
})

test('a ring while nobody waits wakes the next waiter once, unless it was forgotten', async () => {
  const bell = createDoorbell()
  const ending = new AbortController()
  bell.ring()
  bell.ring()
  await bell.wait(1_000_000, ending.signal)
  let isWoken = false
  const waiting = bell.wait(1_000_000, ending.signal).then(() => {
    isWoken = true
  })
  await turn()
  assert.equal(isWoken, false)
  bell.ring()
  await waiting
  bell.ring()
  bell.forget()
  isWoken = false
  const forgotten = bell.wait(1_000_000, ending.signal).then(() => {
    isWoken = true
  })
  await turn()
  assert.equal(isWoken, false)
  ending.abort()
  await forgotten
  await bell.wait(1_000_000, ending.signal)
})

test('a semaphore runs no more than its width at a time, and continues after a failure', async () => {
  const semaphore = createSemaphore(2)
  let active = 0
  let most = 0
  const works = Array.from({ length: 9 }, (_, index) =>
    semaphore.run(async () => {
      most = Math.max(most, ++active)
      await turn()
      active--
      if (index === 3) throw new Error('x')
      return index
    }),
  )
  const results = await Promise.allSettled(works)
  assert.equal(most, 2)
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 8)
})

test('room that is taken counts until it is given back once, and an aborted waiter leaves the line', async () => {
  const semaphore = createSemaphore(1)
  const giveBack = await semaphore.take()
  const leaving = new AbortController()
  const left = semaphore.take(leaving.signal)
  const next = semaphore.take()
  assert.deepEqual([semaphore.taken, semaphore.free, semaphore.waiting], [1, 0, 2])
  leaving.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  giveBack()
  giveBack()
  const giveNextBack = await next
  assert.deepEqual([semaphore.taken, semaphore.waiting], [1, 0])
  giveNextBack()
  assert.equal(semaphore.free, 1)
})

test('room that is taken without waiting may exceed the width, and others wait until it is given back', async () => {
  const semaphore = createSemaphore(1)
  const [first, second] = [semaphore.takeAnyway(), semaphore.takeAnyway()]
  assert.deepEqual([semaphore.taken, semaphore.free], [2, 0])
  let isIn = false
  const waiting = semaphore.run(async () => {
    isIn = true
  })
  first()
  await turn()
  assert.equal(isIn, false)
  second()
  await waiting
  assert.equal(isIn, true)
})

test('pauses double up to a bound, with jitter, and start over', () => {
  const backoff = createBackoff({ firstMs: 100, maxMs: 300, random: () => 1 })
  assert.deepEqual([backoff.nextMs(), backoff.nextMs(), backoff.nextMs(), backoff.nextMs()], [100, 200, 300, 300])
  backoff.reset()
  assert.equal(backoff.nextMs(), 100)
  assert.equal(createBackoff({ firstMs: 100, maxMs: 300, random: () => 0 }).nextMs(), 50)
})

test('a delay longer than a timer supports still waits', async () => {
  const ending = new AbortController()
  let isOver = false
  const sleeping = sleep(Number.MAX_SAFE_INTEGER, ending.signal).then(() => {
    isOver = true
  })
  await new Promise((resolve) => setTimeout(resolve, 5))
  assert.equal(isOver, false)
  ending.abort()
  await sleeping
})
