import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PyValue } from '../python-value.ts'
import { formatTemplate } from './format-template.ts'

const format = (template: string, a: PyValue, b: PyValue = null) => formatTemplate(template, { a, b }, () => {})

test('values without a specification print as Python prints them', () => {
  assert.equal(format('{a}|{b}', 4, 4n), '4.0|4')
  assert.equal(format('{a} {b}', true, null), 'True None')
  assert.equal(format('{a}', [1n, 'x', null, 1.5]), "[1, 'x', None, 1.5]")
  assert.equal(format('{{{a}}}', 1n), '{1}')
})

test('floats are rounded half to even on their exact value', () => {
  assert.equal(format('{a:.0f}|{b:.0f}', 0.5, 2.5), '0|2')
  assert.equal(format('{a:.2f}', 1.005), '1.00')
  assert.equal(format('{a:.16e}', 1e23), '9.9999999999999992e+22')
  assert.equal(format('{a:.20f}', 0.1), '0.10000000000000000555')
  assert.equal(format('{a:.1f}', 1e23), '99999999999999991611392.0')
})

test('every type of presentation gives what Python gives', () => {
  const cases: readonly [string, PyValue, string][] = [
    ['{a:d}', 42n, '42'],
    ['{a:x}|{a:#X}|{a:b}|{a:o}', 255n, 'ff|0XFF|11111111|377'],
    ['{a:c}', 8364n, '€'],
    ['{a:,}|{a:_}', 1234567n, '1,234,567|1_234_567'],
    ['{a:_x}', 0xdeadbeefn, 'dead_beef'],
    ['{a:e}|{a:E}', 1234.5, '1.234500e+03|1.234500E+03'],
    ['{a:g}|{a:.2g}|{a:#g}', 1234.5, '1234.5|1.2e+03|1234.50'],
    ['{a:%}|{a:.1%}', 0.125, '12.500000%|12.5%'],
    ['{a:.3}|{a:.4}', 123, '1.23e+02|123.0'],
    ['{a:n}', 1.5, '1.5'],
    ['{a:.2}|{a:5.1}|', 'abc', 'ab|a    |'],
  ]
  for (const [template, value, text] of cases) assert.equal(format(template, value), text, template)
})

test('width, alignment, sign and zeros are laid out as Python does', () => {
  assert.equal(format('{a:>6}|{a:<6}|{a:^6}|{a:*^7}', 'hi'), '    hi|hi    |  hi  |**hi***')
  assert.equal(format('{a:+d}|{a: d}|{a:06d}|{a:=+6d}', 42n), '+42| 42|000042|+   42')
  assert.equal(format('{a:012,.1f}', 1234.56), '00,001,234.6')
  assert.equal(format('{a:08,}', 1234n), '0,001,234')
  assert.equal(format('{a:z.0f}', -0.4), '0')
  assert.equal(format('{a:5}', true), '    1')
  assert.equal(format('{a:3}|', '😀'), '😀  |')
})

test('a specification can come from another value, one level deep', () => {
  assert.equal(format('{a:>{b}}', 'x', 4n), '   x')
  assert.throws(() => format('{a:{b:{a}}}', 1n, 2n), /Max string recursion exceeded/)
})

test('members and conversions are looked up as Python does', () => {
  assert.equal(format('{a[0]}{a[1][k]}', ['x', new Map([['k', 2n]])]), 'x2')
  assert.equal(format('{a!r:>6}|{b!a}', 'é', 'é'), "   'é'|'\\xe9'")
  assert.equal(format('{a.real}', 3n), '3')
})

test('what cannot be formatted fails in the words of Python', () => {
  const refusals: readonly [string, PyValue, string, string][] = [
    ['{x}', 1n, 'KeyError', "'x'"],
    ['{}', 1n, 'IndexError', 'Replacement index 0 out of range for positional args tuple'],
    ['{a', 1n, 'ValueError', "expected '}' before end of string"],
    ['}', 1n, 'ValueError', "Single '}' encountered in format string"],
    ['{a:d}', 1.5, 'ValueError', "Unknown format code 'd' for object of type 'float'"],
    ['{a:.2d}', 1n, 'ValueError', 'Precision not allowed in integer format specifier'],
    ['{a:+}', 'x', 'ValueError', 'Sign not allowed in string format specifier'],
    ['{a:5}', null, 'TypeError', 'unsupported format string passed to NoneType.__format__'],
    ['{a!q}', 1n, 'ValueError', 'Unknown conversion specifier q'],
    ['{a.x}', 1n, 'AttributeError', "'int' object has no attribute 'x'"],
    ['{a[3]}', [1n], 'IndexError', 'list index out of range'],
    ['{a:f}', 10n ** 400n, 'OverflowError', 'int too large to convert to float'],
  ]
  for (const [template, value, exceptionType, message] of refusals) {
    assert.throws(() => format(template, value), { exceptionType, message }, template)
  }
})

test('a width that no memory holds is refused', () => {
  assert.throws(() => format('{a:9999999999}', 'x'), { exceptionType: 'MemoryError' })
  assert.throws(() => format('{a:.999999999f}', 1), { exceptionType: 'MemoryError' })
})
