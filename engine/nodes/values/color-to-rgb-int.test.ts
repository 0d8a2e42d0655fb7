import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { colorToRgbInt } from './color-to-rgb-int.ts'

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
