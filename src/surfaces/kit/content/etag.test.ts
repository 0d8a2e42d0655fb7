import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesEtag, toEtag } from './etag.ts'

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
