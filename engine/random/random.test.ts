/** Numbers that PyTorch and NumPy are known to give for well-known seeds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fillTorchNormal, MersenneTwister, seedNumpy } from './random.ts'

function normals(count: number, seed: number | bigint): number[] {
  const out = new Float32Array(count)
  fillTorchNormal(out, seed, () => {})
  return [...out]
}

const rounded = (values: readonly number[]) => values.map((value) => Math.round(value * 1e4) / 1e4)

test('the generator gives the reference numbers of its authors', () => {
  const bits = new MersenneTwister(5489)
  assert.deepEqual([bits.next(), bits.next()], [3_499_211_612, 581_869_302])
  // The ten thousandth number of the default seed is part of the C++ standard.
  for (let i = 3; i < 10_000; i++) bits.next()
  assert.equal(bits.next(), 4_123_659_995)
})

test('numbers are the same one by one and many at a time, and a seed counts by its low 32 bits', () => {
  const [one, many, wide] = [new MersenneTwister(7), new MersenneTwister(7), new MersenneTwister(2n ** 40n + 7n)]
  const drawn = new Uint32Array(2000)
  many.next()
  many.fill(drawn)
  one.next()
  wide.next()
  drawn.forEach((value) => {
    assert.equal(value, one.next())
    assert.equal(value, wide.next())
  })
})

test('a few normal numbers are those of torch.randn', () => {
  assert.deepEqual(rounded(normals(5, 0)), [1.541, -0.2934, -2.1788, 0.5684, -1.0845])
  assert.deepEqual(rounded(normals(3, 42)), [0.3367, 0.1288, 0.2345])
})

test('sixteen and more are made in another way, as torch does', () => {
  const first = [-1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.692, -0.316, -2.1152]
  assert.deepEqual(rounded(normals(16, 0).slice(0, 8)), first)
  assert.deepEqual(normals(40, 0).slice(0, 16), normals(16, 0))
})

test('a tail that fills no block is drawn anew over the last sixteen numbers', () => {
  const [whole, cut] = [normals(48, 3), normals(37, 3)]
  assert.deepEqual(cut.slice(0, 21), whole.slice(0, 21))
  assert.notDeepEqual(cut.slice(21), whole.slice(21, 37))
})

test('many numbers have mean 0 and deviation 1', () => {
  const values = normals(300_000, 11)
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  assert.ok(Math.abs(mean) < 0.01 && Math.abs(variance - 1) < 0.01)
  assert.ok(values.every(Number.isFinite))
})

test('bounded integers and permutations are those of numpy.random.seed', () => {
  const draw = seedNumpy(42)
  assert.deepEqual(
    Array.from({ length: 5 }, () => draw.bounded(99)),
    [51, 92, 14, 71, 60],
  )
  assert.deepEqual(seedNumpy(0).permutation(10), [2, 8, 4, 9, 1, 6, 7, 3, 0, 5])
  assert.equal(seedNumpy(0).bounded(0), 0)
})
