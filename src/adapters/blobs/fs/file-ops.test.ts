import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBufferPool } from './file-ops.ts'

test('a crowd gets small buffers, and large ones again once it has gone', () => {
  const pool = createBufferPool({ sizeBytes: 1000, keep: 1, crowd: { from: 2, sizeBytes: 10 } })
  const taken = [pool.take(), pool.take(), pool.take(), pool.take()]
  assert.deepEqual(
    taken.map((buffer) => buffer.length),
    [1000, 1000, 10, 10],
  )
  for (const buffer of taken) pool.giveBack(buffer)
  assert.deepEqual(
    [pool.take(), pool.take(), pool.take()].map((buffer) => buffer.length),
    [1000, 1000, 10],
  )
})

test('an idle buffer is used again and never handed out twice', () => {
  const pool = createBufferPool({ sizeBytes: 100, keep: 1 })
  const first = pool.take()
  pool.giveBack(first)
  assert.equal(pool.take(), first)
  assert.notEqual(pool.take(), first)
})
