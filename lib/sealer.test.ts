import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSealer } from './sealer.ts'

const sealer = createSealer(Buffer.alloc(32, 1))
const PLAIN = Buffer.from('a secret')

test('what was sealed opens under the same key and context only', () => {
  const sealed = sealer.seal(PLAIN, 'job-1')
  assert.deepEqual(sealer.open(sealed, 'job-1'), PLAIN)
  assert.equal(sealer.open(sealed, 'job-2'), null)
  assert.equal(createSealer(Buffer.alloc(32, 2)).open(sealed, 'job-1'), null)
})

test('sealing the same secret twice gives different bytes, and neither contains it', () => {
  const [one, two] = [sealer.seal(PLAIN, 'a'), sealer.seal(PLAIN, 'a')]
  assert.notDeepEqual(one, two)
  assert.ok(!Buffer.from(one).includes(PLAIN))
})

test('changed, truncated and unrelated bytes do not open', () => {
  const sealed = sealer.seal(PLAIN, 'a')
  for (let index = 0; index < sealed.length; index++) {
    const changed = Uint8Array.from(sealed)
    changed[index] ^= 1
    assert.equal(sealer.open(changed, 'a'), null)
  }
  for (const length of [0, 1, 28, sealed.length - 1]) assert.equal(sealer.open(sealed.subarray(0, length), 'a'), null)
})

test('a key of another length is refused', () => {
  assert.throws(() => createSealer(Buffer.alloc(16)), RangeError)
})

test('after an exchange of keys the former one opens what it sealed, and the new one seals', () => {
  const former = Buffer.alloc(32, 1)
  const fresh = Buffer.alloc(32, 9)
  const both = createSealer(fresh, [former])
  assert.deepEqual(both.open(sealer.seal(Buffer.from('old'), 'job-1'), 'job-1'), Buffer.from('old'))
  const sealed = both.seal(Buffer.from('new'), 'job-1')
  assert.equal(sealer.open(sealed, 'job-1'), null)
  assert.deepEqual(createSealer(fresh).open(sealed, 'job-1'), Buffer.from('new'))
})
