import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../errors.ts'
import { createOutputReceipts } from './output-receipts.ts'

const OLD = { id: 'old', secret: Buffer.alloc(32, 1) }
const NEW = { id: 'new', secret: Buffer.alloc(32, 2) }
const PIECE = { hash: 'blake3:aa', sizeBytes: 7 }

const isForbidden = (error: unknown) => error instanceof ServiceError && error.refusal === 'forbidden'

test('a receipt counts for these bytes under this lease, and for nothing else', () => {
  const receipts = createOutputReceipts([NEW])
  const receipt = receipts.give('lease', PIECE)
  receipts.mustHold('lease', PIECE, receipt)
  assert.throws(() => receipts.mustHold('another lease', PIECE, receipt), isForbidden)
  assert.throws(() => receipts.mustHold('lease', { ...PIECE, hash: 'blake3:ab' }, receipt), isForbidden)
  assert.throws(() => receipts.mustHold('lease', { ...PIECE, sizeBytes: 8 }, receipt), isForbidden)
  for (const forged of ['', receipt.slice(1), 'A'.repeat(receipt.length)]) {
    assert.throws(() => receipts.mustHold('lease', PIECE, forged), isForbidden)
  }
})

test('a receipt of a former key counts until that key is gone', () => {
  const receipt = createOutputReceipts([OLD]).give('lease', PIECE)
  createOutputReceipts([NEW, OLD]).mustHold('lease', PIECE, receipt)
  assert.throws(() => createOutputReceipts([NEW]).mustHold('lease', PIECE, receipt), isForbidden)
})
