import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newKeyId, newKeyText, readKeyId } from './api-key.ts'

test('a key carries its id, a prefix that scanners know, and no two are alike', () => {
  const id = newKeyId()
  const text = newKeyText(id)
  assert.match(text, /^atl_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/)
  assert.equal(readKeyId(text), id)
  const texts = new Set(Array.from({ length: 1000 }, () => newKeyText(id)))
  assert.equal(texts.size, 1000)
})

test('one wrong letter anywhere, a missing one or one too many is refused by the checksum', () => {
  const text = newKeyText(newKeyId())
  for (let at = 0; at < text.length; at++) {
    const other = text[at] === 'x' ? 'y' : 'x'
    assert.equal(readKeyId(text.slice(0, at) + other + text.slice(at + 1)), null, `letter ${at}`)
  }
  for (const wrong of ['', 'atl_', text.slice(1), text.slice(0, -1), `${text}0`, ` ${text}`, `${text}\n`]) {
    assert.equal(readKeyId(wrong), null)
  }
})
