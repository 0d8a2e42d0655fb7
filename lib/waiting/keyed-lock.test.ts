import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyedLock } from './semaphore.ts'

test('work under one key runs in sequence, in the order of the calls; other keys do not wait', async () => {
  const locks = createKeyedLock()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = locks.run('a', async () => {
    await gate.promise
    steps.push('a1')
  })
  const second = locks.run('a', async () => {
    steps.push('a2')
  })
  await locks.run('b', async () => {
    steps.push('b')
  })
  assert.deepEqual(locks.held(), ['a'])
  gate.resolve()
  await Promise.all([first, second])
  assert.deepEqual(steps, ['b', 'a1', 'a2'])
  assert.deepEqual(locks.held(), [])
})

test('a failure reaches its own caller, and the next in line runs', async () => {
  const locks = createKeyedLock()
  const failing = locks.run('a', () => Promise.reject(new Error('broken')))
  const next = locks.run('a', async () => 7)
  await assert.rejects(failing, /broken/)
  assert.equal(await next, 7)
})

test('settled waits for earlier work and not for later work', async () => {
  const locks = createKeyedLock()
  const gate = Promise.withResolvers<void>()
  const work = locks.run('a', () => gate.promise)
  let isSettled = false
  const settled = locks.settled('a').then(() => {
    isSettled = true
  })
  await new Promise(setImmediate)
  assert.equal(isSettled, false)
  gate.resolve()
  await Promise.all([work, settled])
  assert.equal(isSettled, true)
})
