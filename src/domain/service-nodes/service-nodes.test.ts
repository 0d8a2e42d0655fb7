import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createFixedClock } from '../../../test/support/fixed-clock.ts'
import { createMemoryNodes } from '../../../test/support/memory-nodes.ts'
import { openHeartbeat } from './heartbeat.ts'
import { createLeadership } from './leadership.ts'

const about = () => ({ version: '1', host: 'here', workers: {} })

test('of two processes one leads; the other does so once the first is gone, and at once when it leaves', async () => {
  const clock = createFixedClock()
  const { store } = createMemoryNodes()
  await using stack = new AsyncDisposableStack()
  async function lead(nodeId: string) {
    const beats = stack.use(await openHeartbeat({ store, nodeId, about, clock, log: silentLog }))
    const leadership = createLeadership({ name: 'work', clock, forMs: 15_000 })
    beats.contend(leadership)
    return { ...leadership, renew: () => beats.beat() }
  }
  const [one, two] = [await lead('one'), await lead('two')]
  assert.deepEqual([one.isHeld(), two.isHeld()], [false, false])
  await one.renew()
  await two.renew()
  assert.deepEqual([one.isHeld(), two.isHeld()], [true, false])
  const signal = one.signal()
  clock.advance(15_000)
  assert.equal(one.isHeld(), false, 'it could not renew it in time')
  await two.renew()
  await one.renew()
  assert.deepEqual([one.isHeld(), two.isHeld(), signal?.aborted], [false, true, true])
  two.end()
  await store.leave('two')
  await one.renew()
  assert.deepEqual([one.isHeld(), two.isHeld(), one.signal()?.aborted], [true, false, false])
  one.end()
})

test('a process is seen alive from its first beat to its end, and as long after a death as it had said', async () => {
  const clock = createFixedClock()
  const { store } = createMemoryNodes()
  const open = (nodeId: string) => openHeartbeat({ store, nodeId, about, clock, log: silentLog })
  await using one = await open('one')
  const two = await open('two')
  const seen = async () => (await one.findLive()).map(({ id }) => id)
  assert.deepEqual(await seen(), ['one', 'two'])
  clock.advance(29_999)
  assert.deepEqual(await seen(), ['one', 'two'])
  clock.advance(1)
  assert.deepEqual(await seen(), ['one'], 'it knows that it lives itself')
  await two.beat()
  assert.deepEqual(await seen(), ['one', 'two'])
  await two[Symbol.asyncDispose]()
  assert.deepEqual(await seen(), ['one'])
})

test('steps travel with each beat, and how long the store was reached without a break is known', async () => {
  const clock = createFixedClock()
  const { store, state } = createMemoryNodes()
  await using beats = await openHeartbeat({ store, nodeId: 'one', about, clock, log: silentLog })
  let steps = 0
  beats.onBeat(async () => {
    steps++
    throw new Error('this step fails')
  })
  beats.onBeat(async () => void steps++)
  clock.advance(5000)
  await beats.beat()
  clock.advance(5000)
  await beats.beat()
  assert.deepEqual([steps, beats.steadyForMs()], [4, 10_000])
  state.isAway = true
  await beats.beat()
  assert.equal(beats.steadyForMs(), 0)
  state.isAway = false
  await beats.beat()
  clock.advance(7000)
  assert.equal(beats.steadyForMs(), 7000)
  clock.advance(4000)
  await beats.beat()
  assert.equal(beats.steadyForMs(), 0, 'eleven seconds without a beat are a break')
})
