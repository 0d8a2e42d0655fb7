import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closestWord, editDistance } from './closest-word.ts'

test('added, missing and replaced letters count as distance', () => {
  assert.deepEqual(
    [editDistance('', 'abc'), editDistance('returns', 'retruns'), editDistance('same', 'same')],
    [3, 2, 0],
  )
})

test('the nearest word is found, and none where nothing is near', () => {
  const words = ['returns', 'price', 'input', 'id']
  assert.deepEqual(
    ['retruns', 'Prise', 'inputs', 'colour', 'x', ''].map((word) => closestWord(word, words)),
    ['returns', 'price', 'input', null, null, null],
  )
})

test('two letters that changed places are found in a short word too', () => {
  assert.equal(closestWord('prot', ['host', 'port', 'kind']), 'port')
})

test('of two equally near words the first is taken, and very long texts match nothing', () => {
  assert.equal(closestWord('sort', ['port', 'sore']), 'port')
  assert.equal(closestWord('p'.repeat(100_000), ['port']), null)
})
