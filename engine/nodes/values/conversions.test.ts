import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import type { Value } from '../../values/value.ts'
import { colorToRgbInt, numberConvert } from './primitives.ts'

function convert(value: Value): readonly Value[] {
  return (numberConvert.run({ value }, {} as NodeContext) as CallResult).outputs as readonly Value[]
}

const float = (text: string) => new NumberText(text)

test('numbers, texts and truth values become a float and an integer', () => {
  assert.deepEqual(convert(true), [float('1.0'), 1])
  assert.deepEqual(convert(-3.7), [-3.7, -3])
  assert.deepEqual(convert(' 12.9 '), [12.9, 12])
  assert.deepEqual(convert('1e3'), [float('1000.0'), 1000])
  assert.deepEqual(convert('1_000'), [float('1000.0'), 1000])
})

test('the digits of a long integer survive', () => {
  assert.deepEqual(convert('9007199254740993'), [float('9007199254740992.0'), 9007199254740993n])
  assert.deepEqual(convert(2n ** 64n - 1n), [float('1.8446744073709552e+19'), 18446744073709551615n])
})

test('what is no finite number is refused with the reason', () => {
  const refusals: readonly [Value, string, string][] = [
    ['  ', 'ValueError', 'Cannot convert empty string to number.'],
    ['0x10', 'ValueError', "Cannot convert string to number: '0x10'"],
    ['inf', 'ValueError', 'Cannot convert non-finite value to number: inf'],
    ['nan', 'ValueError', 'Cannot convert non-finite value to number: nan'],
    [float('1e999'), 'OverflowError', 'cannot convert float infinity to integer'],
    [10n ** 400n, 'OverflowError', 'int too large to convert to float'],
    [[1], 'TypeError', 'Unsupported input type: list'],
    [null, 'TypeError', 'Unsupported input type: NoneType'],
  ]
  for (const [value, exceptionType, message] of refusals) {
    assert.throws(() => convert(value), { exceptionType, message })
  }
})

const run = (color: string) => colorToRgbInt.run({ color }, {} as NodeContext)

test('a colour becomes a number, its text without opacity, and the opacity', () => {
  assert.deepEqual(run('#0a0B0c'), { outputs: [658188, '#0a0B0c', new NumberText('1.0')] })
  assert.deepEqual(run('#ff000080'), { outputs: [16711680, '#ff0000', 128 / 255] })
})

test('anything else is refused', () => {
  for (const color of ['', 'red', '#fff', '#12345g', '#1234567', ' #ffffff']) {
    assert.throws(() => run(color), { message: 'Color must be in format #RRGGBB or #RRGGBBAA' })
  }
})
