import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../test/support/seeded-random.ts'
import { BoundedMap, BoundedSet } from './bounded-map.ts'

test('beyond the bound the entry that was set the longest ago is dropped', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('c', 3)
  assert.deepEqual([map.get('a'), map.get('b'), map.get('c'), map.size], [undefined, 2, 3, 2])
})

test('setting a key again makes it the newest, reading it does not', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  map.set('a', 3)
  map.get('b')
  map.set('c', 4)
  assert.deepEqual([map.has('a'), map.has('b'), map.has('c')], [true, false, true])
})

test('deleting an entry makes room for another', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 2)
  assert.deepEqual([map.delete('a'), map.delete('a')], [true, false])
  map.set('c', 3)
  assert.deepEqual([...map.values()], [2, 3])
  map.clear()
  assert.equal(map.size, 0)
})

test('whatever is set, deleted and emptied in between, the oldest entries go first', () => {
  const random = seededRandom(7)
  const map = new BoundedMap<number, number>(20)
  let expected: number[] = []
  for (let step = 0; step < 20_000; step++) {
    const key = random.between(0, 60)
    const choice = random.next()
    if (choice >= 0.999) {
      map.clear()
      expected = []
      continue
    }
    expected = expected.filter((each) => each !== key)
    if (choice < 0.7) {
      map.set(key, key)
      expected = [...expected, key].slice(-20)
    } else map.delete(key)
    assert.deepEqual([...map.values()], expected)
  }
})

test('an entry with the value undefined is an entry', () => {
  const map = new BoundedMap<string, null>(1)
  map.set('a', null)
  assert.deepEqual([map.has('a'), map.get('a')], [true, null])
})

test('a set drops entries in the same order', () => {
  const set = new BoundedSet<string>(2)
  for (const value of ['a', 'b', 'a', 'c']) set.add(value)
  assert.deepEqual([set.has('a'), set.has('b'), set.has('c'), set.size], [true, false, true, 2])
  assert.deepEqual([set.delete('a'), set.delete('b')], [true, false])
})

test('a bound that leaves no room is refused', () => {
  for (const bound of [0, -1, Number.NaN]) assert.throws(() => new BoundedMap(bound), RangeError)
})
