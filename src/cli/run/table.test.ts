import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTable } from './table.ts'

test('quotes, commas and line breaks in values, and whatever ends a line', () => {
  const text = '\ufeff3.seed,6.text\r\n1,"a ""lake"", two\nlines"\r\n2,\n'
  assert.deepEqual(readTable(text, 't.csv'), {
    names: ['3.seed', '6.text'],
    rows: [
      ['1', 'a "lake", two\nlines'],
      ['2', ''],
    ],
  })
})

test('what is no table is refused', () => {
  for (const text of ['', 'a,b', 'a\n"x"y\n', 'a,b\n1\n', 'a\n"open', `a\n${'1\n'.repeat(1001)}`])
    assert.throws(() => readTable(text, 't.csv'), /--batch t\.csv/)
})
