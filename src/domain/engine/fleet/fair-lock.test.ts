import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFairTurns } from './fair-lock.ts'

test('turns go round among all who ask, whoever asks first', async () => {
  const { take } = createFairTurns()
  const order: string[] = []
  const ask = async (name: string, asker: object, times: number) => {
    for (let time = 0; time < times; time++) await take(asker, async () => order.push(name) > 0)
  }
  await Promise.all([ask('a', {}, 3), ask('b', {}, 3), ask('c', {}, 3)])
  assert.equal(order.join(''), 'abcabcabc')
})

test('a turn that came to nothing costs nobody its place', async () => {
  const { take } = createFairTurns()
  const [idle, one, two] = [{}, {}, {}]
  const order: string[] = []
  const ask = (name: string, asker: object, isServed = true) =>
    take(asker, async () => {
      order.push(name)
      return isServed
    })
  await Promise.all([ask('one', one), ask('idle', idle, false)])
  await Promise.all([ask('one', one), ask('two', two), ask('idle', idle, false)])
  assert.deepEqual(order, ['one', 'idle', 'two', 'idle', 'one'])
})

test('work that fails ends its own turn only', async () => {
  const { take } = createFairTurns()
  const broken = take({}, () => Promise.reject(new Error('no')))
  const whole = take({}, async () => true)
  await assert.rejects(broken, /no/)
  assert.equal(await whole, true)
})
