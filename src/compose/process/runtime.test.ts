import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMinorGc } from './runtime.ts'

const MIB = 1024 * 1024

function countCollections() {
  let collections = 0
  const onTransferred = createMinorGc(() => collections++)
  return { onTransferred, collections: () => collections }
}

test('a collection is asked for with every 16 MiB, whatever the size of the chunks', () => {
  const { onTransferred, collections } = countCollections()
  for (let mib = 0; mib < 15; mib++) onTransferred(MIB)
  onTransferred(MIB - 1)
  assert.equal(collections(), 0)
  onTransferred(1)
  assert.equal(collections(), 1)
  onTransferred(15 * MIB)
  assert.equal(collections(), 1)
  onTransferred(100 * MIB)
  assert.equal(collections(), 2)
})

test('each counter counts for itself', () => {
  const one = countCollections()
  const other = countCollections()
  one.onTransferred(10 * MIB)
  other.onTransferred(10 * MIB)
  assert.deepEqual([one.collections(), other.collections()], [0, 0])
})

test('the runtime is asked when nobody else is named', () => {
  const onTransferred = createMinorGc()
  assert.doesNotThrow(() => onTransferred(32 * MIB))
})
