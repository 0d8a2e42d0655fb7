import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ServiceError } from '../../domain/errors.ts'
import { createCursorSeal, createTimeCursors } from './cursor.ts'

const SECRET = Buffer.alloc(32, 7)
const cursors = createTimeCursors(SECRET)
const POSITION = { createdAt: new Date(0), id: '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234' }

function isRefused(text: string, filters: string): void {
  assert.throws(
    () => cursors.read(text, filters),
    (error) => error instanceof ServiceError && error.refusal === 'invalid_cursor',
    text,
  )
}

test('a cursor comes back as the position it was made of', () => {
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true }), fc.uuid(), fc.string(), (createdAt, id, filters) => {
      assert.deepEqual(cursors.read(cursors.encode({ createdAt, id }, filters), filters), { createdAt, id })
    }),
  )
})

test('any other text, and a cursor of other filters, is refused and never crashes', () => {
  fc.assert(fc.property(fc.string(), (text) => isRefused(text, 'f')))
  fc.assert(
    fc.property(fc.jsonValue(), (value) => isRefused(Buffer.from(JSON.stringify(value)).toString('base64url'), 'f')),
  )
  isRefused(cursors.encode(POSITION, 'a'), 'b')
  isRefused(createTimeCursors(Buffer.alloc(32, 8)).encode(POSITION, 'a'), 'a')
})

test('a cursor that was cut anywhere, extended by anything or changed in any letter is refused', () => {
  const cursor = cursors.encode(POSITION, 'f')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  for (let at = 0; at < cursor.length; at++) {
    isRefused(cursor.slice(0, at), 'f')
    isRefused(cursor.slice(at + 1), 'f')
    for (const letter of letters) {
      if (letter !== cursor[at]) isRefused(cursor.slice(0, at) + letter + cursor.slice(at + 1), 'f')
    }
  }
  for (const more of [...letters, '=', '==', ' ', '.', '\n', 'A'.repeat(1000)]) {
    isRefused(cursor + more, 'f')
    isRefused(more + cursor, 'f')
  }
})

test('a content of any length has one spelling only', () => {
  const { seal, open } = createCursorSeal(SECRET)
  for (let length = 0; length < 8; length++) {
    const cursor = seal('x'.repeat(length))
    assert.equal(open(cursor), 'x'.repeat(length))
    for (const other of [`${cursor}=`, `${cursor}==`, cursor.replaceAll('-', '+').replaceAll('_', '/').concat(' ')])
      assert.equal(open(other), null)
  }
})
