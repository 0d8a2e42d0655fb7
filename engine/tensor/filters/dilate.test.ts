import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { elementCount, Tensor } from '../tensor.ts'
import { createDilation, type Dilation } from './dilate.ts'

const work = {
  allocate: (shape: readonly number[]) =>
    new Tensor(shape, new Float32Array(new SharedArrayBuffer(elementCount(shape) * 4))),
  checkpoint() {},
}

/** One pixel at a time, as often as the radius says. */
function growSlowly(source: Float32Array, { width, height, radius, isTapered, isErosion }: Dilation): Float32Array {
  let plane = source
  for (let round = 0; round < radius; round++) {
    plane = plane.map((_, at) => {
      const [x, y] = [at % width, Math.floor(at / width)]
      const seen: number[] = []
      for (const dy of [-1, 0, 1]) {
        for (const dx of [-1, 0, 1]) {
          const isInside = x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height
          if (isInside && !(isTapered && dx !== 0 && dy !== 0)) seen.push(plane[at + dy * width + dx])
        }
      }
      return isErosion ? Math.min(...seen) : Math.max(...seen)
    })
  }
  return plane
}

const dilations = fc.record({
  width: fc.integer({ min: 1, max: 12 }),
  height: fc.integer({ min: 1, max: 12 }),
  radius: fc.integer({ min: 1, max: 14 }),
  isTapered: fc.boolean(),
  isErosion: fc.boolean(),
})

test('growing in strides gives what growing pixel by pixel gives', () => {
  fc.assert(
    fc.property(dilations, fc.integer(), (dilation, seed) => {
      const count = dilation.width * dilation.height
      const source = Float32Array.from({ length: count }, (_, at) => Math.sin(seed + at * 12.9898) * 0.5)
      const target = new Float32Array(count)
      createDilation(dilation, work)(source, target)
      assert.deepEqual(target, growSlowly(source, dilation))
    }),
    { numRuns: 200 },
  )
})

test('a radius of several stages reaches as far as it says, for every plane of a batch', () => {
  const dilation = { width: 900, height: 1, radius: 600, isTapered: true, isErosion: false }
  const grow = createDilation(dilation, work)
  for (const bright of [0, 899]) {
    const source = new Float32Array(900)
    source[bright] = 1
    const target = new Float32Array(900)
    grow(source, target)
    assert.equal(
      target.reduce((sum, value) => sum + value, 0),
      601,
    )
  }
})
