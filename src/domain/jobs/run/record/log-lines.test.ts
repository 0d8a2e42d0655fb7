import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { appendLog, createLogMarks, EMPTY_LOG, type LogTail, readLog, toLogLines, withLine } from './log-lines.ts'

test('what fits is kept whole and in order', () => {
  const tail = ['one\n', '', 'two\n', 'three'].reduce((log: LogTail, text) => appendLog(log, text, 100), EMPTY_LOG)
  assert.deepEqual(readLog(tail, 100), { text: 'one\ntwo\nthree', truncated: false })
})

test('the beginning is dropped when the bound is exceeded, and that shows', () => {
  const tail = appendLog(appendLog(EMPTY_LOG, 'abcdef', 8), 'ghij', 8)
  assert.deepEqual(readLog(tail, 8), { text: 'cdefghij', truncated: true })
})

test('an earlier tail is not changed by what is appended to it', () => {
  const before = appendLog(EMPTY_LOG, 'a', 10)
  appendLog(before, 'b', 10)
  assert.equal(readLog(before, 10).text, 'a')
})

test('one huge text costs no more than the bound', () => {
  const { text, truncated } = readLog(appendLog(EMPTY_LOG, `${'x'.repeat(5_000_000)}end`))
  assert.ok(truncated && text.length === 256 * 1024 && text.endsWith('xend'))
})

const texts = fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 60 })

test('the tail is the end of everything printed, at most as long as the bound, nearly as long as it can be', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 4, max: 200 }), (parts, maxBytes) => {
      const whole = parts.join('')
      const { text, truncated } = readLog(
        parts.reduce((log: LogTail, part) => appendLog(log, part, maxBytes), EMPTY_LOG),
        maxBytes,
      )
      assert.ok(whole.endsWith(text))
      const bytes = Buffer.byteLength(text)
      assert.ok(bytes <= maxBytes)
      assert.equal(truncated, text.length < whole.length)
      if (truncated) assert.ok(bytes > maxBytes - 4)
    }),
  )
})

test('a line that no node has printed stands at the end, and leaves the other lines to their nodes', () => {
  const at = new Date(2000)
  const kept = { truncated: false, capturedAt: at, complete: true }
  for (const text of ['one\ntwo\n', 'one\ntwo']) {
    const marks = createLogMarks()
    marks.note(text, 1000, '7')
    const lines = toLogLines(withLine({ ...kept, text, marks: marks.finish() }, 'checked', at))
    assert.deepEqual(
      lines.map((line) => [line.n, line.text, line.nodeId]),
      [
        [0, 'one', '7'],
        [1, 'two', '7'],
        [2, 'checked', null],
      ],
    )
  }
  assert.deepEqual(
    toLogLines(withLine(undefined, 'checked', at)).map((line) => line.text),
    ['checked'],
  )
})
