import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryLedger, Tensor } from '../../tensor/tensor.ts'
import { ResultCache } from './result-cache.ts'

function open(budgetBytes: number) {
  const ledger = new MemoryLedger({ limitBytes: 2 ** 30, evict: () => false, collectGarbage: () => {} })
  /** The memory of a finished call: only the cache still holds it. */
  const keep = (signature: string, bytes: number) => {
    const buffer = ledger.allocate(bytes)
    cache.set('a', signature, { outputs: [[new Tensor([1], new Float32Array(buffer, 16, 1))]], report: null })
    ledger.release(buffer)
    return buffer
  }
  const cache = new ResultCache({ budgetBytes, plainBudgetBytes: budgetBytes, ledger })
  return { cache, ledger, keep }
}

test('the entry that was unused for longest goes first, and its memory with it', () => {
  const { cache, ledger, keep } = open(250_000)
  keep('one', 90_000)
  keep('two', 90_000)
  assert.ok(cache.get('a', 'one'))
  keep('three', 90_000)
  assert.equal(cache.get('a', 'two'), null)
  assert.ok(cache.get('a', 'one') && cache.get('a', 'three'))
  assert.ok(ledger.liveBytes() < 250_000)
})

test('memory that two entries share counts once and stays until both are gone', () => {
  const { cache, ledger, keep } = open(250_000)
  const buffer = keep('one', 150_000)
  cache.set('a', 'two', { outputs: [[new Tensor([1], new Float32Array(buffer, 16, 1))]], report: null })
  assert.ok(cache.get('a', 'one') && cache.get('a', 'two'))
  cache.evictOldest()
  assert.equal(ledger.liveBytes(), buffer.byteLength)
  cache.evictOldest()
  assert.equal(ledger.liveBytes(), 0)
  assert.equal(cache.evictOldest(), false)
})

test('what is larger than the budget is not kept, encoded files included', () => {
  const { cache, keep } = open(100_000)
  keep('large', 200_000)
  assert.equal(cache.get('a', 'large'), null)
  const file = { kind: 'file', filename: 'x', subfolder: '', folder: 'output', contentType: 'image/png' } as const
  cache.set('a', 'file', { outputs: [], report: { images: [{ ...file, bytes: new Uint8Array(200_000) }] } })
  assert.equal(cache.get('a', 'file'), null)
})

test('small results are bounded in number, and the one that was unused for longest goes first', () => {
  const { cache } = open(1_000_000_000)
  const entry = { outputs: [['text']], report: null }
  for (let index = 0; index < 10_000; index++) cache.set('a', String(index), entry)
  assert.notEqual(cache.get('a', '0'), null)
  cache.set('a', 'one more', entry)
  assert.notEqual(cache.get('a', '0'), null)
  assert.equal(cache.get('a', '1'), null)
})
