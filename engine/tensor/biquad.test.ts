import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyBiquad, type Biquad, highShelf, lowShelf, peaking } from './sound.ts'
import { type PixelWork, Tensor } from './tensor.ts'

const RATE = 48_000

/** How much a tone comes out louder, in decibels. */
function gainAt({ a, b }: Biquad, frequency: number): number {
  const w = (2 * Math.PI * frequency) / RATE
  const size = (weights: readonly number[]) => {
    const real = weights.reduce((sum, weight, i) => sum + weight * Math.cos(i * w), 0)
    const imaginary = weights.reduce((sum, weight, i) => sum - weight * Math.sin(i * w), 0)
    return Math.hypot(real, imaginary)
  }
  return 20 * Math.log10(size(b) / size([1, ...a]))
}

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) < 0.05, `${actual} is not ${expected}`)

test('a low shelf lifts what lies below, a high shelf what lies above, by the given decibels', () => {
  const low = lowShelf({ frequency: 200, sampleRate: RATE, gainDb: 9, q: Math.SQRT1_2 })
  near(gainAt(low, 5), 9)
  near(gainAt(low, 200), 4.5)
  near(gainAt(low, 10_000), 0)
  const high = highShelf({ frequency: 5000, sampleRate: RATE, gainDb: -12, q: Math.SQRT1_2 })
  near(gainAt(high, 50), 0)
  near(gainAt(high, 5000), -6)
  near(gainAt(high, 23_500), -12)
})

test('a peak lifts its own frequency and leaves the rest', () => {
  const peak = peaking({ frequency: 1000, sampleRate: RATE, gainDb: 6, q: 2 })
  near(gainAt(peak, 1000), 6)
  near(gainAt(peak, 20), 0)
  near(gainAt(peak, 20_000), 0)
})

test('rows are filtered by themselves, and the result stays within full scale', () => {
  const work: PixelWork = {
    allocate: (shape) => new Tensor([...shape], new Float32Array(new SharedArrayBuffer(4 * 12))),
    checkpoint() {},
  }
  const source = new Tensor(
    [1, 2, 6],
    Float32Array.from(new Float32Array(new SharedArrayBuffer(48))) as Float32Array<never>,
  )
  source.data.set([1, 1, 1, 1, 1, 1])
  const louder = applyBiquad(source, { b: [2, 0, 0], a: [0, 0] }, work)
  assert.deepEqual([...louder.data], [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
  const delayed = applyBiquad(source, { b: [0, 0.25, 0], a: [0, 0] }, work)
  assert.deepEqual([...delayed.data.subarray(0, 3)], [0, 0.25, 0.25])
})
