/** The vector kernels against the same formulas written out plainly. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeValues } from '../tensor/channels.ts'
import { BLEND_MODES, type BlendMode, toBlendJob } from '../tensor/compose/blend.ts'
import { filterSeparable, gaussianHalf } from '../tensor/filters/separable-filter.ts'
import { createAxisTable, type FloatMethod } from '../tensor/resize/resize-float.ts'
import { createLanczosTable } from '../tensor/resize/resize-lanczos.ts'
import type { UpscaleMethod } from '../tensor/resize/resize-rows.ts'
import { upscale } from '../tensor/resize/upscale.ts'
import { runRows } from '../tensor/rows/run-rows.ts'
import { elementCount, type PixelWork, Tensor } from '../tensor/tensor.ts'

const allocate = (shape: readonly number[]) =>
  new Tensor(shape, new Float32Array(new SharedArrayBuffer(elementCount(shape) * 4)))
const work: PixelWork = { allocate, checkpoint() {} }

/** Values in 0..1 that look like noise and are the same every time. */
function noise(shape: readonly number[]): Tensor {
  const result = allocate(shape)
  for (let i = 0; i < result.data.length; i++) result.data[i] = ((i * 7919 + 31) % 1009) / 1008
  return result
}

function flat(shape: readonly number[], value: number): Tensor {
  const result = allocate(shape)
  result.data.fill(value)
  return result
}

function assertNear(actual: Float32Array, expected: ArrayLike<number>, tolerance: number): void {
  assert.equal(actual.length, expected.length)
  for (let i = 0; i < actual.length; i++) {
    assert.ok(Math.abs(actual[i] - expected[i]) <= tolerance, `at ${i}: ${actual[i]} instead of ${expected[i]}`)
  }
}

const at = ({ shape, data }: Tensor, y: number, x: number, c: number) => data[(y * shape[2] + x) * shape[3] + c]

function plainResize(source: Tensor, width: number, height: number, method: FloatMethod): number[] {
  const [, oldHeight, oldWidth, channels] = source.shape
  const across = createAxisTable(method, oldWidth, width)
  const down = createAxisTable(method, oldHeight, height)
  const values: number[] = []
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < channels; c++) {
        let sum = 0
        for (let j = y * down.taps; j < (y + 1) * down.taps; j++) {
          for (let i = x * across.taps; i < (x + 1) * across.taps; i++) {
            sum += down.weights[j] * across.weights[i] * at(source, down.indexes[j], across.indexes[i], c)
          }
        }
        values.push(sum)
      }
    }
  }
  return values
}

const SIZES = [
  [1, 1, 5, 4],
  [7, 5, 3, 2],
  [13, 9, 31, 40],
  [40, 33, 9, 4],
  [64, 3, 1, 17],
  // Exactly half has kernels of its own.
  [14, 10, 7, 5],
  [66, 38, 33, 19],
] as const

for (const method of ['nearest-exact', 'bilinear', 'bicubic'] as const) {
  test(`${method} is what its table of weights says, for any number of channels`, () => {
    for (const [width, height, newWidth, newHeight] of SIZES) {
      for (const channels of [1, 2, 3, 4, 5, 9]) {
        const source = noise([1, height, width, channels])
        const resized = upscale(source, { width: newWidth, height: newHeight, method, crop: 'disabled' }, work)
        assertNear(resized.data, plainResize(source, newWidth, newHeight, method), 1e-6)
      }
    }
  })
}

const { fround } = Math

/** The second product, then the others on top of it, each addition rounded once: the product of two singles is exact. */
function fusedSum(values: readonly number[], weights: readonly number[]): number {
  let sum = fround(values[1] * weights[1])
  for (const index of [0, 2, 3]) sum = fround(values[index] * weights[index] + sum)
  return sum
}

type PixelAt = (y: number, x: number, channel: number) => number

function eachPixel(height: number, width: number, channels: number, value: PixelAt): number[] {
  return Array.from({ length: height * width * channels }, (_, at) =>
    value(Math.floor(at / channels / width), Math.floor(at / channels) % width, at % channels),
  )
}

test('bicubic and bilinear add up as PyTorch does, bit for bit', () => {
  for (const [width, height, newWidth, newHeight] of [...SIZES, [31, 29, 70, 66] as const, [20, 40, 77, 90] as const]) {
    const source = noise([1, height, width, 3])
    const tables = (method: FloatMethod) =>
      [createAxisTable(method, width, newWidth), createAxisTable(method, height, newHeight)] as const
    const resized = (method: UpscaleMethod) => [
      ...upscale(source, { width: newWidth, height: newHeight, method, crop: 'disabled' }, work).data,
    ]
    const [across, down] = tables('bicubic')
    if (across.taps === 4 && down.taps === 4) {
      const four = [0, 1, 2, 3]
      const inRow = (row: number, x: number, c: number) =>
        fusedSum(
          four.map((tap) => at(source, row, across.indexes[x * 4 + tap], c)),
          four.map((tap) => across.weights[x * 4 + tap]),
        )
      const expected = eachPixel(newHeight, newWidth, 3, (y, x, c) =>
        fusedSum(
          four.map((tap) => inRow(down.indexes[y * 4 + tap], x, c)),
          four.map((tap) => down.weights[y * 4 + tap]),
        ),
      )
      assert.deepEqual(resized('bicubic'), expected)
    }
    const [right, below] = tables('bilinear')
    const square = [0, 1, 2, 3].map((corner) => [corner >> 1, corner & 1] as const)
    const expected = eachPixel(newHeight, newWidth, 3, (y, x, c) =>
      fusedSum(
        square.map(([j, i]) => at(source, below.indexes[y * 2 + j], right.indexes[x * 2 + i], c)),
        square.map(([j, i]) => fround(below.weights[y * 2 + j] * right.weights[x * 2 + i])),
      ),
    )
    assert.deepEqual(resized('bilinear'), expected)
  }
})

/** PyTorch's own answers: a bicubic resize of an impulse shows the weights, some of which fall out differently unfused. */
test('bicubic weights are those of PyTorch', () => {
  const { weights } = createAxisTable('bicubic', 20, 77)
  const recorded = [-0.09305, 0.9285593, 0.18607855, -0.021587849]
  assert.deepEqual([...weights.subarray(24, 28)], recorded.map(fround))
})

/** The sum in reading order, rounded to single precision at every step, then divided by height and by width. */
function plainArea(source: Tensor, width: number, height: number): number[] {
  const [, oldHeight, oldWidth, channels] = source.shape
  const { floor, ceil } = Math
  const values: number[] = []
  for (let at = 0; at < height * width * channels; at++) {
    const [y, x, channel] = [floor(at / channels / width), floor(at / channels) % width, at % channels]
    const [top, bottom] = [floor((y * oldHeight) / height), ceil(((y + 1) * oldHeight) / height)]
    const [left, right] = [floor((x * oldWidth) / width), ceil(((x + 1) * oldWidth) / width)]
    let sum = 0
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        sum = fround(sum + source.data[(row * oldWidth + column) * channels + channel])
      }
    }
    values.push(fround(fround(sum / (bottom - top)) / (right - left)))
  }
  return values
}

test('area is the mean in single precision, bit for bit, for any number of channels', () => {
  for (const [width, height, newWidth, newHeight] of SIZES) {
    for (const channels of [1, 2, 3, 4, 5, 9]) {
      const source = noise([1, height, width, channels])
      const options = { width: newWidth, height: newHeight, method: 'area', crop: 'disabled' } as const
      assert.deepEqual([...upscale(source, options, work).data], plainArea(source, newWidth, newHeight))
    }
  }
})

test('a picture of one colour keeps exactly that colour in a blur, a sharpening and resizes that go through bytes', () => {
  for (const level of [1, 2, 77, 128, 200, 254, 255]) {
    const value = Math.fround(level / 255)
    const source = flat([1, 23, 29, 3], value)
    const results = (['nearest-exact', 'lanczos'] as UpscaleMethod[]).flatMap((method) =>
      [11, 64].map((side) => upscale(source, { width: side, height: side, method, crop: 'disabled' }, work)),
    )
    const half = gaussianHalf(4, 1)
    results.push(filterSeparable(source, { half }, work), filterSeparable(source, { half, sharpenBy: 10 }, work))
    for (const { data } of results) assert.ok(data.every((each) => each === value))
  }
})

/** Pillow's two passes, byte by byte. */
function plainLanczos(source: Tensor, width: number, height: number): number[] {
  const [, oldHeight, oldWidth, channels] = source.shape
  const bytes = Array.from(source.data, (value) => Math.trunc(Math.fround(255 * value)))
  const pass = (from: readonly number[], table: ReturnType<typeof createLanczosTable>, lines: Lines) => {
    if (table === null) return [...from]
    const to: number[] = []
    for (let line = 0; line < lines.count; line++) {
      for (let target = 0; target < table.starts.length; target++) {
        let sum = 1 << 21
        for (let tap = 0; tap < table.counts[target]; tap++) {
          const value = from[line * lines.apart + (table.starts[target] + tap) * lines.step]
          sum += table.weights[target * table.taps + tap] * value
        }
        to.push(Math.max(0, Math.min(255, sum >> 22)))
      }
    }
    return to
  }
  interface Lines {
    readonly count: number
    readonly apart: number
    readonly step: number
  }
  // One channel at a time; after the first pass columns are lines.
  const planes = Array.from({ length: channels }, (_, c) => {
    const plane = bytes.filter((_value, index) => index % channels === c)
    const wide = pass(plane, createLanczosTable(oldWidth, width), { count: oldHeight, apart: oldWidth, step: 1 })
    return pass(wide, createLanczosTable(oldHeight, height), { count: width, apart: 1, step: width })
  })
  const isTurned = oldHeight !== height
  return Array.from({ length: width * height * channels }, (_, index) => {
    const [c, pixel] = [index % channels, Math.floor(index / channels)]
    const [x, y] = [pixel % width, Math.floor(pixel / width)]
    return Math.fround(planes[c][isTurned ? x * height + y : pixel] / 255)
  })
}

test('lanczos is the two passes in fixed point, bit for bit', () => {
  for (const [width, height, newWidth, newHeight] of [...SIZES, [20, 30, 20, 7], [30, 20, 7, 20], [9, 8, 9, 8]]) {
    for (const channels of [1, 3]) {
      const source = noise([1, height, width, channels])
      const resized = upscale(source, { width: newWidth, height: newHeight, method: 'lanczos', crop: 'disabled' }, work)
      assert.deepEqual([...resized.data], plainLanczos(source, newWidth, newHeight))
    }
  }
})

test('a blur is the sum over the reflected neighbourhood', () => {
  const mirrored = (index: number, size: number) =>
    index < 0 ? -index : index >= size ? 2 * (size - 1) - index : index
  for (const [width, height, radius] of [
    [9, 8, 1],
    [21, 40, 5],
    [70, 33, 31],
  ]) {
    for (const channels of [1, 3, 4]) {
      const source = noise([1, height, width, channels])
      const half = gaussianHalf(radius, 0.8)
      const expected: number[] = []
      for (let i = 0; i < source.data.length; i++) {
        const [c, pixel] = [i % channels, Math.floor(i / channels)]
        const [x, y] = [pixel % width, Math.floor(pixel / width)]
        let sum = 0
        for (let j = -radius; j <= radius; j++) {
          for (let k = -radius; k <= radius; k++) {
            const value = at(source, mirrored(y + j, height), mirrored(x + k, width), c)
            sum += half[Math.abs(j)] * half[Math.abs(k)] * value
          }
        }
        expected.push(sum)
      }
      assertNear(filterSeparable(source, { half }, work).data, expected, 2e-6)
      const sharp = expected.map((value, i) => Math.max(0, Math.min(1, 4 * source.data[i] - 3 * value)))
      assertNear(filterSeparable(source, { half, sharpenBy: 3 }, work).data, sharp, 1e-5)
    }
  }
})

function softLight(a: number, b: number): number {
  if (b <= 0.5) return a - (1 - 2 * b) * a * (1 - a)
  const lifted = a <= 0.25 ? ((16 * a - 12) * a + 4) * a : Math.sqrt(a)
  return a + (2 * b - 1) * (lifted - a)
}

const PLAIN: Readonly<Record<BlendMode, (a: number, b: number) => number>> = {
  normal: (_a, b) => b,
  multiply: (a, b) => a * b,
  screen: (a, b) => 1 - (1 - a) * (1 - b),
  overlay: (a, b) => (a <= 0.5 ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b)),
  soft_light: softLight,
  difference: (a, b) => a - b,
}

test('blend modes are their formulas, clipped', () => {
  const [a, b] = [noise([1, 37, 1]).data, noise([1, 37, 1]).data.toReversed()]
  const values = { a: Float32Array.of(...a, -1, 2, 0.5), b: Float32Array.of(...b, 0.5, 3, 0.5) }
  for (const mode of BLEND_MODES) {
    const out = new Float32Array(values.a.length)
    runRows(toBlendJob({ ...values, out, size: out.length, mode, factor: 0.3 }), work)
    const expected = Array.from(values.a, (value, i) => {
      const mixed = value * 0.7 + PLAIN[mode](value, values.b[i]) * 0.3
      return Math.max(0, Math.min(1, mixed))
    })
    // The root of a negative value is no number, here as there.
    for (const [i, value] of expected.entries()) if (Number.isNaN(value)) assert.ok(Number.isNaN(out[i]))
    assertNear(
      out.map((value) => (Number.isNaN(value) ? 0 : value)),
      expected.map((value) => (Number.isNaN(value) ? 0 : value)),
      1e-6,
    )
  }
})

test('a negative is one minus every value, however many there are', () => {
  for (const width of [1, 17, 5_462, 5_463]) {
    const source = noise([1, 3, width, 1])
    source.data[0] = -0
    source.data[1] = Number.POSITIVE_INFINITY
    const inverted = changeValues(source, { kind: 'invert' }, work)
    assert.deepEqual(
      [...inverted.data],
      Array.from(source.data, (value) => fround(1 - value)),
    )
  }
})

test('a cancelled resize stops at the next row and leaves the kernels usable', () => {
  let rows = 0
  const checkpoint = () => {
    rows += 1
    if (rows > 3) throw new Error('cancelled')
  }
  const source = noise([1, 40, 40, 3])
  const options = { width: 80, height: 80, method: 'bicubic', crop: 'disabled' } as const
  assert.throws(() => upscale(source, options, { allocate, checkpoint }), /cancelled/)
  assert.equal(rows, 4)
  assertNear(upscale(source, options, work).data, plainResize(source, 80, 80, 'bicubic'), 1e-6)
})
