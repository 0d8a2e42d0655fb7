import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pyCapitalize, pyLower, pyTitle, pyUpper } from './text-methods.ts'

test('upper and lower case use the full mappings of Unicode', () => {
  assert.equal(pyUpper('straße ﬁ ǆ'), 'STRASSE FI Ǆ')
  assert.equal(pyLower('ΌΣΟΣ İ'), 'όσος i̇')
})

test('a word starts after any character without case', () => {
  assert.equal(pyTitle("they're 3d-print x2y"), "They'Re 3D-Print X2Y")
  assert.equal(pyTitle('ΌΣΟΣ ΣΣ'), 'Όσος Σς')
})

test('title case is a case of its own', () => {
  assert.equal(pyTitle('ǆ ß ﬁ ŉ ა ᾳ ᾼ ᾷ և'), 'ǅ Ss Fi ʼN ა ᾼ ᾼ ᾼ͂ Եւ'.replace('ᾼ͂', 'ᾼ͂'))
  assert.equal(pyCapitalize('ǆXY Σ'), 'ǅxy σ')
  assert.equal(pyCapitalize(''), '')
})
