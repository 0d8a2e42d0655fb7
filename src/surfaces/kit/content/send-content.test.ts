import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { matchesEtag, readRange, toEtag } from './send-content.ts'

const TAG = toEtag('bytes')

test('a tag is strong and changes with the bytes', () => {
  assert.match(TAG, /^"[0-9a-f]{64}"$/)
  assert.notEqual(toEtag('other'), TAG)
})

const CASES: [header: string | undefined, matches: boolean][] = [
  [undefined, false],
  ['', false],
  ['"other"', false],
  [TAG, true],
  [`W/${TAG}`, true],
  [`"other", W/${TAG}`, true],
  [' * ', true],
  [TAG.slice(1, -1), false],
]

for (const [header, matches] of CASES) {
  test(`If-None-Match: ${header} ${matches ? 'matches' : 'does not match'}`, () => {
    assert.equal(matchesEtag(header, TAG), matches)
  })
}

const part = (start: number, end: number) => ({ kind: 'part', span: { start, end } })

test('the three forms of a single range give their slice', () => {
  assert.deepEqual(readRange('bytes=0-0', 10), part(0, 0))
  assert.deepEqual(readRange('bytes=2-5', 10), part(2, 5))
  assert.deepEqual(readRange('bytes=7-', 10), part(7, 9))
  assert.deepEqual(readRange('bytes=-3', 10), part(7, 9))
  assert.deepEqual(readRange('Bytes= 2-5 ', 10), part(2, 5))
})

test('a range that goes beyond the end stops at the end', () => {
  assert.deepEqual(readRange('bytes=5-99999999999999999999999', 10), part(5, 9))
  assert.deepEqual(readRange('bytes=-100', 10), part(0, 9))
})

test('a range that touches no byte is unsatisfiable', () => {
  for (const [header, size] of [
    ['bytes=10-', 10],
    ['bytes=10-20', 10],
    ['bytes=-0', 10],
    ['bytes=0-', 0],
    ['bytes=-1', 0],
  ] as const) {
    assert.deepEqual(readRange(header, size), { kind: 'unsatisfiable' })
  }
})

test('no header, a malformed one, another unit and several ranges mean the whole', () => {
  for (const header of [
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes=5-2',
    'items=0-1',
    'bytes=0-1,3-4',
    'bytes=1.5-2',
    'bytes=+1-2',
  ]) {
    assert.deepEqual(readRange(header, 10), { kind: 'whole' })
  }
})

test('whatever is asked, an answered part lies inside', () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(), (text, size) => {
      for (const header of [text, `bytes=${text}`, `bytes=${text.length}-${text.length * 2}`]) {
        const answer = readRange(header, size)
        if (answer.kind !== 'part') continue
        const { start, end } = answer.span
        assert.ok(start >= 0 && start <= end && end < size)
      }
    }),
  )
})
