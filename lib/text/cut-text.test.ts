import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepHead, keepTail } from './cut-text.ts'

test('a cut never splits a character', () => {
  assert.equal(keepTail('a😀', 4), '😀')
  assert.equal(keepTail('a😀', 3), '')
  assert.equal(keepTail('é'.repeat(3), 5), 'éé')
  assert.equal(keepTail('xx😀', 1), '')
  assert.equal(keepHead('a😀', 5), 'a😀')
  assert.equal(keepHead('a😀', 4), 'a')
  assert.equal(keepHead('é'.repeat(3), 5), 'éé')
  assert.equal(keepHead('😀xx', 1), '')
})

test('a text that fits is returned unchanged, lone surrogates included', () => {
  assert.equal(keepTail('a\ud83d', 10), 'a\ud83d')
  assert.equal(keepHead('a\ud83d', 10), 'a\ud83d')
})
