import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkerLoad } from './live-sockets.ts'

test('a key has a bounded number of requests under way, and one that ends makes room', () => {
  const load = createWorkerLoad(() => 0)
  const ends = Array.from({ length: 512 }, () => load.begin('one'))
  assert.throws(() => load.begin('one'), { refusal: 'overloaded' })
  load.begin('other')
  ends[0]!()
  ends[0]!()
  load.begin('one')
  assert.throws(() => load.begin('one'), { refusal: 'overloaded' })
})

test('a key that asks too often is refused until time has passed', () => {
  let nowMs = 0
  const load = createWorkerLoad(() => nowMs)
  const ask = () => load.begin('one')()
  for (let count = 0; count < 2000; count++) ask()
  assert.throws(ask, { refusal: 'overloaded' })
  nowMs += 1000
  for (let count = 0; count < 200; count++) ask()
  assert.throws(ask, { refusal: 'overloaded' })
})
