import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createResultCache } from './result-cache.ts'

const ledger = { retain() {}, release() {} }

test('small results are bounded in number, and the one that was unused for longest goes first', () => {
  const cache = createResultCache({ budgetBytes: 1_000_000_000, ledger })
  const entry = { outputs: [['text']], report: null }
  for (let index = 0; index < 10_000; index++) cache.set('local', String(index), entry)
  assert.notEqual(cache.get('local', '0'), null)
  cache.set('local', 'one more', entry)
  assert.notEqual(cache.get('local', '0'), null)
  assert.equal(cache.get('local', '1'), null)
})
