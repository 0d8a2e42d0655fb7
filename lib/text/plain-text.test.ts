import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPlainLine, isPlainText, toPlainLine } from './plain-text.ts'

test('letters of every script are plain, what nobody sees is not; only texts of several lines have line ends', () => {
  for (const text of ['A card', 'Grüße 😀', 'بطاقة', 'תמונה', '卡片', '</script>', "'*/`$(x)"]) {
    assert.ok(isPlainLine(text) && isPlainText(text), text)
    assert.equal(toPlainLine(text), text)
  }
  for (const text of ['a\u0000', 'a\u001b[31m', '\u202egnp', '\u2066x', 'a\u2028b', '\ud800', '\u0085']) {
    assert.ok(!isPlainLine(text) && !isPlainText(text), JSON.stringify(text))
    assert.ok(isPlainLine(toPlainLine(text)))
  }
  assert.deepEqual([isPlainLine('a\nb'), isPlainText('a\r\n\tb')], [false, true])
})
