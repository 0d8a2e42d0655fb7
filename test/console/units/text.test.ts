import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  describeFilter,
  fits,
  readFilter,
  toMoment,
  toSearchAddress,
  writeFilter,
} from '../../../console/src/api/filter.ts'
import { formatBytes, formatRunning, formatSpan, formatUsd } from '../../../console/src/text/format.ts'
import { toPieces, toTail, withoutTerminalCodes } from '../../../console/src/text/log-text.ts'
import { toMarkedText, toSegments } from '../../../console/src/text/marks.ts'
import { indentJson } from '../../../lib/json/indent-json.ts'
import { summary } from './summary.ts'

test('characters that turn or hide a line are shown as marks, and the words around them stay', () => {
  assert.equal(toMarkedText('logo \u202egnp.exe'), 'logo ⟨RLO⟩gnp.exe')
  assert.equal(toMarkedText('a\u0000b\u001bc\u200bd'), 'a␀b␛c⟨ZWSP⟩d')
  assert.equal(toMarkedText('👩‍🎨 عربي é 漢字'), '👩‍🎨 عربي é 漢字')
  assert.deepEqual(toSegments('one\ntwo', { isBlock: true }), [{ text: 'one\ntwo', isMark: false }])
  assert.equal(toMarkedText('one\ntwo'), 'one↵two')
})

test('no marked text holds a character of direction or control', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.integer({ min: 0, max: 0x2fff }).map((code) => String.fromCodePoint(code)) }),
      (text) => {
        assert.equal(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(toMarkedText(text)), false)
      },
    ),
  )
})

test('spans, sizes and money read as a person writes them', () => {
  assert.deepEqual([0, 949, 950, 8900, 59_000, 125_000, 3_780_000].map(formatSpan), [
    ...['0 ms', '949 ms', '0.9 s', '8.9 s', '59 s', '2 m 05 s', '1 h 03 m'],
  ])
  assert.deepEqual([8000, 760_000, 3_800_000].map(formatRunning), ['0:08', '12:40', '1:03:20'])
  assert.deepEqual([0, 1023, 1024, 812_345, 5 * 1024 ** 3].map(formatBytes), [
    ...['0 B', '1023 B', '1.0 KiB', '793 KiB', '5.0 GiB'],
  ])
  assert.deepEqual(['12.4', '0.000001', '-3', '1234567.10'].map(formatUsd), [
    ...['$12.40', '$0.000001', '−$3.00', '$1,234,567.10'],
  ])
})

test('money never loses a digit that is not a zero', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), (micros) => {
      const text = `${micros / 1_000_000n}.${String(micros % 1_000_000n).padStart(6, '0')}`
      const shown = formatUsd(text).replaceAll(/[$,]/g, '')
      const [whole, behind] = shown.split('.')
      assert.equal(BigInt(whole) * 1_000_000n + BigInt(behind.padEnd(6, '0')), micros)
    }),
  )
})

test('a search takes what lists show: an id, keys with their values, words of a filter, and any text', () => {
  const id = '01A1E425-D22D-72EA-A12E-1E3FCC93F8E2'
  for (const [typed, address] of [
    ['  ', '/jobs'],
    [id, `/jobs/${id.toLowerCase()}`],
    ['scene=4321', '/jobs?meta.scene=4321'],
    ['engine=gpu1  code=timeout user=a=b', '/jobs?engine=gpu1&code=timeout&meta.user=a%3Db'],
    ['a cat = a dog', '/jobs?q=a+cat+%3D+a+dog'],
    ['out_of_memory', '/jobs?q=out_of_memory'],
  ] as const)
    assert.equal(toSearchAddress(typed, '/jobs'), address)
  assert.equal(toSearchAddress('order=7', '/operator/jobs'), '/operator/jobs?meta.order=7')
})

test('a filter is the same after it went through the address', () => {
  const query = new URLSearchParams('status=failed,queued&q=a+b&code=timeout&meta.user=7&meta.x=%3D&sort=oldest&peek=1')
  const filter = readFilter(query)
  assert.deepEqual(readFilter(writeFilter(filter)), filter)
  assert.equal(writeFilter(filter).get('peek'), null)
  assert.equal(
    describeFilter(readFilter(new URLSearchParams('status=failed&meta.user=7&since=7d'))),
    'failed jobs with user=7 since 7d',
  )
})

test('a filter judges what a summary holds, and says when only the service can', () => {
  const now = Date.parse('2026-11-16T12:00:00Z')
  const job = summary({ id: 'a', status: 'failed', metadata: { user: '7' } })
  const judge = (query: string) => fits(job, readFilter(new URLSearchParams(query)), now)
  assert.deepEqual(
    ['', 'status=failed', 'status=queued', 'since=1h', 'since=3h', 'meta.user=7', 'meta.user=8', 'class=KSampler'].map(
      judge,
    ),
    ['yes', 'yes', 'no', 'no', 'yes', 'yes', 'unknown', 'unknown'],
  )
  assert.equal(toMoment('24h', now), '2026-11-15T12:00:00.000Z')
})

test('lines of a log lose terminal codes, and only web addresses become links', () => {
  assert.equal(withoutTerminalCodes('\u001b[32mok\u001b[0m'), 'ok')
  assert.deepEqual(toPieces('see https://example.com/a?b=1. javascript:alert(1)'), [
    { text: 'see ', href: null },
    { text: 'https://example.com/a?b=1', href: 'https://example.com/a?b=1' },
    { text: '. javascript:alert(1)', href: null },
  ])
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.equal(
        toPieces(text)
          .map((piece) => piece.text)
          .join(''),
        text,
      )
    }),
  )
})

test('JSON over lines is the same JSON, digit by digit', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(indentJson(JSON.stringify(value))), JSON.parse(JSON.stringify(value)))
    }),
  )
  assert.equal(
    indentJson('{"seed":18446744073709551615,"cfg":7.0}'),
    '{\n  "seed": 18446744073709551615,\n  "cfg": 7.0\n}',
  )
})

test('of a long log its end is shown, in whole lines, and whether it had a beginning', () => {
  assert.deepEqual(toTail('one\ntwo\nthree\n', { maxLines: 2 }), { text: 'two\nthree', isCut: true })
  assert.deepEqual(toTail('one\ntwo\nthree\n', { maxChars: 8 }), { text: 'three', isCut: true })
  assert.deepEqual(toTail('one\ntwo\n'), { text: 'one\ntwo', isCut: false })
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{1,9}$/)), fc.integer({ min: 1, max: 40 }), (lines, maxChars) => {
      const whole = lines.join('\n')
      const { text, isCut } = toTail(whole, { maxLines: 5, maxChars })
      assert.ok(whole.endsWith(text) && text.length <= maxChars && text.split('\n').length <= 5)
      assert.equal(isCut, text !== whole)
    }),
  )
})
