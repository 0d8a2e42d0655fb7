import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFairLock } from './fair-lock.ts'

test('all who ask are served in rotation, whoever asks first', async () => {
  const { run } = createFairLock()
  const order: string[] = []
  const ask = async (name: string, asker: object, times: number) => {
    for (let time = 0; time < times; time++) await run(asker, async () => order.push(name) > 0)
  }
  await Promise.all([ask('a', {}, 3), ask('b', {}, 3), ask('c', {}, 3)])
  assert.equal(order.join(''), 'abcabcabc')
})

test('work without success does not change the order', async () => {
  const { run } = createFairLock()
  const [idle, one, two] = [{}, {}, {}]
  const order: string[] = []
  const ask = (name: string, asker: object, isServed = true) =>
    run(asker, async () => {
      order.push(name)
      return isServed
    })
  await Promise.all([ask('one', one), ask('idle', idle, false)])
  await Promise.all([ask('one', one), ask('two', two), ask('idle', idle, false)])
  assert.deepEqual(order, ['one', 'idle', 'two', 'idle', 'one'])
})

test('work that throws does not keep the lock', async () => {
  const { run } = createFairLock()
  const broken = run({}, () => Promise.reject(new Error('no')))
  const whole = run({}, async () => true)
  await assert.rejects(broken, /no/)
  assert.equal(await whole, true)
})
