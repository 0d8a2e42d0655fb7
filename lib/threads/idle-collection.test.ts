import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createIdleCollection, type HeapRuntime } from './garbage.ts'

const MIB = 1024 * 1024

function fakeRuntime(state: { heap: number; busy: number; live: number }): HeapRuntime {
  return {
    heapBytes: () => state.heap,
    busyShare: () => state.busy,
    collect() {
      state.heap = state.live
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

test('the heap of this thread can be collected', () => {
  assert.equal(typeof createIdleCollection()(), 'boolean')
})
