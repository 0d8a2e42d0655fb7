import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLeaves, findValue, readJsonPath } from './model.ts'

const DOCUMENT = { data: [{ url: 'a' }, { url: null }, {}], task: { content: { url: 'b' } }, output: ['c', 'd'] }

const CASES: [path: string, found: unknown[]][] = [
  ['data[].url', ['a', null]],
  ['data[1].url', [null]],
  ['data[7].url', []],
  ['task.content.url', ['b']],
  ['output[]', ['c', 'd']],
  ['output[0]', ['c']],
  ['task.content[].url', []],
  ['output.length', []],
  ['nowhere.at.all', []],
  ['', [DOCUMENT]],
]

for (const [path, found] of CASES) {
  test(`${path || 'the empty path'} finds ${found.length}`, () => {
    const values = findLeaves(DOCUMENT, readJsonPath(path)).map(({ value }) => value)
    assert.deepEqual(values, found)
    assert.deepEqual(findValue(DOCUMENT, readJsonPath(path)), found[0])
  })
}

test('a found value can be replaced in its document', () => {
  const document = { data: [{ url: 'a' }, { url: 'b' }] }
  for (const { holder, key } of findLeaves(document, readJsonPath('data[].url'))) holder[key] = 'new'
  assert.deepEqual(document, { data: [{ url: 'new' }, { url: 'new' }] })
})

test('a text that is no path is refused', () => {
  for (const text of ['.', 'a..b', 'a[', 'a[x]', 'a]b', '[]x'])
    assert.throws(() => readJsonPath(text), /not a path/, text)
})

test('a name of the prototype is no value', () => {
  assert.equal(findValue({}, readJsonPath('constructor')), undefined)
})
