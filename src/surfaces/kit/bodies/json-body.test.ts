import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findShapeFault } from './json-body.ts'

const LIMITS = { maxDepth: 3, maxValues: 5, maxLongDigits: 50 }
const look = (text: string) => findShapeFault(Buffer.from(text), LIMITS)

test('depth, values and long numbers are counted outside strings only', () => {
  assert.equal(look('[[[1]]]'), null)
  assert.equal(look('[[[[1]]]]'), 'too_deep')
  assert.equal(look('[1,2,3,4,5]'), null)
  assert.equal(look('[1,2,3,4,5,6,7]'), 'too_many_values')
  assert.equal(look('{"a":{},"b":{},"c":{}}'), 'too_many_values')
  assert.equal(look(`[${'9'.repeat(50)}]`), null)
  assert.equal(look(`[${'9'.repeat(26)},${'9'.repeat(26)}]`), 'too_many_digits')
  assert.equal(look('[18446744073709551615,18446744073709551615,18446744073709551615]'), null)
  assert.equal(look(`["[[[[[[[[,,,,,,,,${'9'.repeat(99)}\\"[[[[[","\\\\"]`), null)
})

test('a text that is not JSON is left to the parser', () => {
  for (const text of ['', '"', '"\\', ']]]]', '[1', '\u0000', 'nonsense']) assert.equal(look(text), null)
})
