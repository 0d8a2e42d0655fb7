import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ServiceError } from '../../domain/errors.ts'
import { encodeCursor, readCursor } from './cursor.ts'

test('a cursor comes back as the position it was made of', () => {
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true }), fc.uuid(), fc.string(), (createdAt, id, filters) => {
      assert.deepEqual(readCursor(encodeCursor({ createdAt, id }, filters), filters), { createdAt, id })
    }),
  )
})

test('any other text, and a cursor of other filters, is refused and never crashes', () => {
  const isRefused = (text: string, filters: string) =>
    assert.throws(
      () => readCursor(text, filters),
      (error) => error instanceof ServiceError && error.refusal === 'invalid_cursor',
    )
  fc.assert(fc.property(fc.string(), (text) => isRefused(text, 'f')))
  fc.assert(
    fc.property(fc.jsonValue(), (value) => isRefused(Buffer.from(JSON.stringify(value)).toString('base64url'), 'f')),
  )
  isRefused(encodeCursor({ createdAt: new Date(0), id: '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234' }, 'a'), 'b')
})
