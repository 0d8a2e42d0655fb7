import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toArchiveNames } from './outputs-archive.ts'

test('no name leads out of its folder, whatever it is', () => {
  const names = ['../../etc/passwd', '/abs', 'C:\\x', '..', '', 'a\u0000b\u202e.png', 'nul.txt', '.hidden']
  for (const name of toArchiveNames(names)) assert.doesNotMatch(name, /^\.|[/\\:]|\p{Cc}|\p{Cf}|^nul/u, name)
})

test('equal names are told apart, also where case does not count', () => {
  assert.deepEqual(toArchiveNames(['a.png', 'A.png', 'a.png', 'b']), ['a.png', 'A (2).png', 'a (3).png', 'b'])
})
