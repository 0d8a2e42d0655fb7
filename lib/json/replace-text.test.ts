import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replaceText } from './replace-text.ts'

test('another text stands in place of the member, and every other byte is as it came', () => {
  const cases = [
    ['{"model":"a"}', '{"model":"new"}'],
    ['\ufeff {"model" : "a" , "seed": 1.0}', '{"model" : "new" , "seed": 1.0}'],
    [
      '{"messages": [{"model": "x", "content": "\\"model\\": \\\\"}], "model": "a\\"b\\\\", "z": 12345678901234567890}',
      '{"messages": [{"model": "x", "content": "\\"model\\": \\\\"}], "model": "new", "z": 12345678901234567890}',
    ],
    [
      '{"x": "model", "mod\\u0065l": "ä", "y": {"model": 1}}',
      '{"x": "model", "mod\\u0065l": "new", "y": {"model": 1}}',
    ],
    ['{"x": [], "y": {}, "a": ["model", "b"], "model": ""}', '{"x": [], "y": {}, "a": ["model", "b"], "model": "new"}'],
  ]
  for (const [given = '', expected] of cases)
    assert.equal(replaceText(Buffer.from(given), 'model', 'new').toString(), expected)
})

test('the new text is written as JSON', () => {
  const text = 'a "quoted" \\ name\n'
  assert.deepEqual(JSON.parse(replaceText(Buffer.from('{"model":"a","n":1}'), 'model', text).toString()), {
    ...{ model: text, n: 1 },
  })
})

test('an object without the member is a defect', () => {
  assert.throws(() => replaceText(Buffer.from('{"models": "model", "x": {"model": "y"}}'), 'model', 'new'), /no member/)
})
