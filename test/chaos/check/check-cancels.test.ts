import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkCancels } from './check-cancels.ts'

function isFlawed(status: string, end: string, isFinished = false): boolean {
  const told = [{ what: 'cancel', id: 'a', status, at: 1 }] as const
  const finished = new Set(isFinished ? ['a'] : [])
  return checkCancels({ told, ends: new Map([['a', end]]), finished }).length > 0
}

test('what was canceled stays so, and what had ended keeps its end', () => {
  assert.equal(isFlawed('canceled', 'canceled'), false)
  assert.equal(isFlawed('canceled', 'succeeded', true), true)
  assert.equal(isFlawed('succeeded', 'succeeded'), false)
  assert.equal(isFlawed('succeeded', 'canceled'), true)
})

test('what is about to be canceled succeeds only where an engine had finished it', () => {
  assert.equal(isFlawed('canceling', 'canceled'), false)
  assert.equal(isFlawed('canceling', 'succeeded', true), false)
  assert.equal(isFlawed('canceling', 'succeeded', false), true)
  assert.equal(isFlawed('canceling', 'expired'), true)
})

test('a cancel that is answered with a job that goes on is a flaw', () => {
  assert.equal(isFlawed('running', 'canceled'), true)
})
