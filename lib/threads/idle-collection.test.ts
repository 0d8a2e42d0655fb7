import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createIdleCollection, type HeapRuntime } from './garbage.ts'

const MIB = 1024 * 1024

function fakeRuntime(state: { heap: number; busy: number; live: number; last?: string }): HeapRuntime {
  return {
    heapBytes: () => state.heap,
    busyShare: () => state.busy,
    collect(type) {
      state.heap = state.live
      state.last = type
    },
  }
}

test('an idle thread is collected once after a busy time', () => {
  const state = { heap: 300 * MIB, busy: 0, live: 60 * MIB }
  const collect = createIdleCollection(fakeRuntime(state))
  assert.equal(collect(), true)
  assert.equal(state.heap, 60 * MIB)
  assert.equal(collect(), false)
  state.heap += MIB
  assert.equal(collect(), false)
})

test('a busy thread is not collected until it is idle', () => {
  const state = { heap: 300 * MIB, busy: 0.4, live: 60 * MIB }
  const collect = createIdleCollection(fakeRuntime(state))
  assert.equal(collect(), false)
  state.busy = 0.01
  assert.equal(collect(), true)
})

test('an idle thread that has let go of much is collected although its heap has not grown', () => {
  const state = { heap: 60 * MIB, busy: 0.4, live: 60 * MIB }
  const collect = createIdleCollection(fakeRuntime(state))
  state.busy = 0
  assert.equal(collect(), true)
  state.live = 20 * MIB
  assert.equal(collect(), false)
  state.busy = 0.4
  assert.equal(collect(true), false)
  state.busy = 0
  assert.equal(collect(true), true)
  assert.equal(state.heap, 20 * MIB)
})

test('what a busy time left is given back whole, the garbage of single jobs by ordinary collections', () => {
  const state = { heap: 200 * MIB, busy: 0, live: 60 * MIB, last: '' }
  const collect = createIdleCollection(fakeRuntime(state))
  assert.deepEqual([collect(), state.last], [true, 'shrink'])
  state.heap += 8 * MIB
  assert.deepEqual([collect(), state.last], [true, 'major'])
  state.heap += 40 * MIB
  assert.deepEqual([collect(), state.last], [true, 'shrink'])
})

test('a thread that made much garbage and rests has its pages back at the first look', async () => {
  const worker = new Worker(new URL('../../test/support/garbage-thread.ts', import.meta.url))
  const [{ before, after }] = await once(worker, 'message')
  await worker.terminate()
  assert.ok(before > 40 * MIB && after < before / 4, `${before} bytes before, ${after} after`)
})
