import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../errors.ts'
import { isMetadataKey, isMetadataValue, readMetadata } from './job-labels.ts'

function isRefused(value: unknown): boolean {
  try {
    readMetadata(value)
    return false
  } catch (error) {
    return error instanceof ServiceError && error.refusal === 'metadata_invalid'
  }
}

function pairs(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
}

test('sixteen pairs of strings are labels, and none is no label', () => {
  assert.deepEqual(readMetadata(undefined), {})
  assert.deepEqual(readMetadata(pairs(16)), pairs(16))
  assert.ok(isRefused(pairs(17)))
})

test('anything but an object of strings, or one text, is refused', () => {
  for (const value of [null, 7, [], ['a'], { a: 1 }, { a: null }, { a: { b: 'c' } }]) assert.ok(isRefused(value))
})

test('a key is 1 to 64 plain characters', () => {
  for (const key of ['a', 'A_z.9-', 'k'.repeat(64), '__proto__']) assert.ok(isMetadataKey(key))
  for (const key of ['', 'k'.repeat(65), 'a b', 'é', 'a/b']) assert.ok(!isMetadataKey(key) && isRefused({ [key]: 'v' }))
})

test('a value has at most 512 characters, however many units they take', () => {
  assert.ok(isMetadataValue('') && isMetadataValue('x'.repeat(512)) && isMetadataValue('😀'.repeat(512)))
  for (const value of ['x'.repeat(513), '😀'.repeat(513), '😀x'.repeat(257)]) assert.ok(!isMetadataValue(value))
})

test('control characters and bidirectional formatting are refused', () => {
  for (const code of [0, 9, 10, 31, 127, 159, 0x202a, 0x202e, 0x2066, 0x2069]) {
    assert.ok(!isMetadataValue(`a${String.fromCodePoint(code)}b`), code.toString(16))
  }
  for (const value of ['שלום', 'a\u200eb', 'é', 'a\u2028b']) assert.ok(isMetadataValue(value))
  assert.ok(!isMetadataValue('\ud800'))
})

test('a label named like a property of every object is an ordinary label', () => {
  const labels = readMetadata(JSON.parse('{"__proto__":"x","constructor":"y"}'))
  assert.deepEqual(Object.entries(labels), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ])
})
