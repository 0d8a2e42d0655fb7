import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMinorGc } from './runtime.ts'

const MIB = 1024 * 1024

function countCollections({ isOn }: { readonly isOn: boolean }) {
  let collections = 0
  const onTransferred = createMinorGc({ isOn, collect: () => collections++ })
  return { onTransferred, collections: () => collections }
}

test('a collection is asked for with every 16 MiB, whatever the size of the chunks', () => {
  const { onTransferred, collections } = countCollections({ isOn: true })
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
  const one = countCollections({ isOn: true })
  const other = countCollections({ isOn: true })
  one.onTransferred(10 * MIB)
  other.onTransferred(10 * MIB)
  assert.deepEqual([one.collections(), other.collections()], [0, 0])
})

test('switched off, nothing is asked for', () => {
  const { onTransferred, collections } = countCollections({ isOn: false })
  onTransferred(1024 * MIB)
  assert.equal(collections(), 0)
})

test('the runtime is asked when nobody else is named', () => {
  const onTransferred = createMinorGc({ isOn: true })
  assert.doesNotThrow(() => onTransferred(32 * MIB))
})
