import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resample } from './sound.ts'
import { type PixelWork, Tensor } from './tensor.ts'

const work: PixelWork = {
  allocate: (shape) =>
    new Tensor([...shape], new Float32Array(new SharedArrayBuffer(4 * shape.reduce((a, b) => a * b, 1)))),
  checkpoint() {},
}

function tone(frequency: number, rate: number, length: number): Tensor {
  const wave = work.allocate([1, 1, length])
  for (let i = 0; i < length; i++) wave.data[i] = Math.sin((2 * Math.PI * frequency * i) / rate)
  return wave
}

/** torchaudio's formula written down directly: every tap of every phase, in double precision. */
function reference(source: Float32Array, from: number, to: number): number[] {
  const divisor = (function gcd(a: number, b: number): number {
    return b === 0 ? a : gcd(b, a % b)
  })(from, to)
  const [step, phases] = [from / divisor, to / divisor]
  const base = Math.min(step, phases) * 0.99
  const width = Math.ceil((6 * step) / base)
  const length = Math.ceil((phases * source.length) / step)
  return Array.from({ length }, (_, i) => {
    const phase = i % phases
    let sum = 0
    for (let index = -width; index < width + step; index++) {
      const time = Math.max(-6, Math.min(6, (index / step - phase / phases) * base))
      const window = Math.cos((time * Math.PI) / 12) ** 2
      const kernel = time === 0 ? 1 : Math.sin(time * Math.PI) / (time * Math.PI)
      sum += (source[Math.floor(i / phases) * step + index] ?? 0) * kernel * window * (base / step)
    }
    return sum
  })
}

for (const [from, to] of [
  [8000, 16_000],
  [44_100, 48_000],
  [96_000, 48_000],
  [11_025, 11_027],
  [48_000, 7],
]) {
  test(`${from} to ${to} Hz equals the written formula`, () => {
    const source = tone(300, from, 800)
    const result = resample(source, { from, to }, work)
    const expected = reference(source.data, from, to)
    assert.deepEqual(result.shape, [1, 1, expected.length])
    const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - result.data[i])), 0)
    assert.ok(worst < 1e-6, `differs by ${worst}`)
  })
}

test('a tone keeps its pitch and loudness', () => {
  const result = resample(tone(440, 22_050, 22_050), { from: 22_050, to: 48_000 }, work)
  const expected = tone(440, 48_000, 48_000)
  for (let i = 200; i < 47_800; i++) assert.ok(Math.abs(result.data[i] - expected.data[i]) < 0.02)
})

test('the same rate is the same sound', () => {
  const source = tone(300, 8000, 80)
  assert.equal(resample(source, { from: 8000, to: 8000 }, work), source)
})

test('channels and elements of a batch stay apart, and nothing gives nothing', () => {
  const source = work.allocate([2, 2, 40])
  source.data.fill(1, 40, 80)
  const result = resample(source, { from: 8000, to: 16_000 }, work)
  assert.deepEqual(result.shape, [2, 2, 80])
  const sums = [0, 1, 2, 3].map((row) => result.data.subarray(row * 80, (row + 1) * 80).some((value) => value !== 0))
  assert.deepEqual(sums, [false, true, false, false])
  assert.deepEqual(resample(work.allocate([1, 2, 0]), { from: 8000, to: 16_000 }, work).shape, [1, 2, 0])
})

test('rates that share nothing need no endless table, and can be cancelled', () => {
  const source = tone(300, 191_999, 4000)
  assert.equal(resample(source, { from: 191_999, to: 192_000 }, work).shape[2], 4001)
  const stopped = { ...work, checkpoint: () => assert.fail('stop') }
  assert.throws(() => resample(source, { from: 1_000_003, to: 999_983 }, stopped), /stop/)
})
