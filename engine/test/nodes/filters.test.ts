/** Filters beyond the recordings: against plain formulas, at borders, with odd channels, cancelled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../test/support/seeded-random.ts'
import { Interrupted, NodeError } from '../../node/node-error.ts'
import { BUILT_IN_NODES } from '../../nodes/built-in.ts'
import {
  imageAddNoise,
  imageHistogram,
  imageRgbToYuv,
  imageYuvToRgb,
  normalizeImages,
} from '../../nodes/filters/adjustments.ts'
import { colorTransfer, imageQuantize } from '../../nodes/filters/colors.ts'
import {
  canny,
  imageBlur,
  imageSharpen,
  ltxvPreprocess,
  morphology,
} from '../../nodes/filters/neighbourhood-filters.ts'
import type { Tensor } from '../../tensor/tensor.ts'
import type { Value } from '../../values/value.ts'
import { callNode, tensor, tensorFrom } from '../support/call-node.ts'

const fails = (type: string, text: RegExp) => (error: unknown) =>
  error instanceof NodeError && error.exceptionType === type && text.test(error.message)

function noise(shape: readonly number[], seed = 1): Tensor {
  const random = seededRandom(seed)
  return tensor(shape, () => random.next())
}

function worst(a: Tensor, b: Tensor): number {
  assert.deepEqual(a.shape, b.shape)
  return a.data.reduce((most, value, index) => Math.max(most, Math.abs(value - b.data[index])), 0)
}

const reflect = (index: number, size: number) => (index < 0 ? -index : index >= size ? 2 * (size - 1) - index : index)

/** The two-dimensional kernel, pixel by pixel. */
function plainBlur({ shape, data }: Tensor, radius: number, sigma: number): Tensor {
  const [, height, width, channels] = shape
  const weight = (k: number, l: number) => Math.exp(-((k / radius) ** 2 + (l / radius) ** 2) / (2 * sigma * sigma))
  const steps = Array.from({ length: 2 * radius + 1 }, (_, k) => k - radius)
  const total = steps.reduce((sum, k) => sum + steps.reduce((row, l) => row + weight(k, l), 0), 0)
  return tensor(shape, (index) => {
    const c = index % channels
    const x = Math.floor(index / channels) % width
    const y = Math.floor(index / channels / width) % height
    const frame = Math.floor(index / channels / width / height)
    let sum = 0
    for (const k of steps) {
      for (const l of steps) {
        const at = (frame * height + reflect(y + k, height)) * width + reflect(x + l, width)
        sum += data[at * channels + c] * weight(k, l)
      }
    }
    return sum / total
  })
}

test('a blur is the sum over its square of weights, borders reflected, for any radius and channels', async () => {
  for (const [radius, sigma, channels] of [
    [1, 1, 3],
    [2, 0.3, 4],
    [5, 2, 1],
    [6, 0.7, 3],
  ]) {
    const image = noise([2, 9, 11, channels])
    const blurred = await tensorFrom(imageBlur, { image, blur_radius: radius, sigma })
    assert.ok(worst(blurred, plainBlur(image, radius, sigma)) < 1e-6)
  }
})

test('a radius that reaches beyond the picture is refused', async () => {
  const inputs = { image: noise([1, 4, 40, 3]), blur_radius: 4, sigma: 1 }
  await assert.rejects(callNode(imageBlur, inputs), fails('RuntimeError', /Padding size should be less/))
})

test('blurring keeps values beyond 0..1, sharpening holds them within', async () => {
  const image = tensor([1, 8, 8, 3], (index) => (index % 2 === 0 ? 3 : -2))
  const blurred = await tensorFrom(imageBlur, { image, blur_radius: 1, sigma: 0.1 })
  assert.ok(blurred.data.some((value) => value > 2.9) && blurred.data.some((value) => value < -1.9))
  const sharp = await tensorFrom(imageSharpen, { image, sharpen_radius: 1, sigma: 1, alpha: 5 })
  assert.ok(sharp.data.every((value) => value >= 0 && value <= 1))
})

test('normalised values may leave 0..1', async () => {
  const images = tensor([1, 1, 1, 3], [0, 0.5, 1])
  assert.deepEqual([...(await tensorFrom(normalizeImages, { images, mean: 0.5, std: 0.25 })).data], [-2, 0, 2])
})

function plainExtreme({ shape, data }: Tensor, size: number, choose: (...values: number[]) => number): Tensor {
  const [, height, width, channels] = shape
  const origin = Math.floor(size / 2)
  return tensor(shape, (index) => {
    const c = index % channels
    const x = Math.floor(index / channels) % width
    const y = Math.floor(index / channels / width) % height
    const seen: number[] = []
    for (let row = Math.max(0, y - origin); row < Math.min(height, y - origin + size); row++) {
      for (let col = Math.max(0, x - origin); col < Math.min(width, x - origin + size); col++) {
        seen.push(data[(row * width + col) * channels + c])
      }
    }
    return choose(...seen)
  })
}

test('erosion and dilation take the extremes of a square, whatever its size and whatever the signs', async () => {
  const image = noise([1, 12, 17, 3])
  image.data.forEach((value, index) => {
    image.data[index] = value * 4 - 2
  })
  for (const size of [3, 4, 5, 8, 13, 40]) {
    const eroded = await tensorFrom(morphology, { image, operation: 'erode', kernel_size: size })
    assert.equal(worst(eroded, plainExtreme(image, size, Math.min)), 0)
    const dilated = await tensorFrom(morphology, { image, operation: 'dilate', kernel_size: size })
    assert.equal(worst(dilated, plainExtreme(image, size, Math.max)), 0)
  }
})

test('a lone bright pixel is gone after opening, and is all that a top hat leaves', async () => {
  const image = tensor([1, 9, 9, 1], (index) => (index === 40 ? 1 : 0.25))
  const run = (operation: string) => tensorFrom(morphology, { image, operation, kernel_size: 3 })
  assert.ok((await run('open')).data.every((value) => value === 0.25))
  assert.deepEqual(
    [...(await run('top_hat')).data].flatMap((value, index) => (value === 0 ? [] : [[index, value]])),
    [[40, 0.75]],
  )
  assert.ok((await run('bottom_hat')).data.every((value) => value === 0))
  assert.equal((await run('gradient')).data.filter((value) => value > 0).length, 9)
})

test('an edge is one line, and weak edges count only where they continue strong ones', async () => {
  // Rises to its full height over three columns, so that its crest is one pixel wide.
  const slope = (strength: number) =>
    tensor([1, 16, 16, 3], (index) => strength * Math.max(0, Math.min(1, ((Math.floor(index / 3) % 16) - 7) / 2)))
  const edges = await tensorFrom(canny, { image: slope(1), low_threshold: 0.4, high_threshold: 0.8 })
  assert.deepEqual(edges.shape, [1, 16, 16, 3])
  const row = Array.from({ length: 16 }, (_, x) => edges.data[(8 * 16 + x) * 3])
  assert.equal(row.join(''), '0000000010000000')
  const run = (strength: number) =>
    tensorFrom(canny, { image: slope(strength), low_threshold: 0.1, high_threshold: 0.9 })
  assert.ok((await run(0.1)).data.every((value) => value === 0))
  // Further down it is too weak by itself, but goes on where the upper part ends.
  const fading = slope(1)
  fading.data.forEach((value, index) => {
    fading.data[index] = value * (1 - 0.062 * Math.floor(index / 48))
  })
  assert.ok((await run(1 - 0.062 * 12)).data.every((value) => value === 0))
  const joined = await tensorFrom(canny, { image: fading, low_threshold: 0.1, high_threshold: 0.9 })
  assert.equal(joined.data[(12 * 16 + 8) * 3], 1)
})

test('thresholds in the wrong order, and pictures with alpha, are refused', async () => {
  const image = noise([1, 8, 8, 4])
  await assert.rejects(
    callNode(canny, { image, low_threshold: 0.9, high_threshold: 0.1 }),
    fails('kornia.core.exceptions.BaseError', /Got: 0.9>0.1/),
  )
  await assert.rejects(
    callNode(canny, { image, low_threshold: 0.1, high_threshold: 0.9 }),
    fails('RuntimeError', /got 4 channels instead/),
  )
  await assert.rejects(callNode(imageQuantize, { image, colors: 4, dither: 'none' }), fails('RuntimeError', /expanded/))
  await assert.rejects(callNode(imageRgbToYuv, { image }), fails('ValueError', /\[1, 4, 8, 8\]/))
})

test('a picture of few colours survives a palette that holds them all', async () => {
  const levels = [0, 60 / 255, 128 / 255, 1]
  const image = tensor([2, 6, 6, 3], (index) => levels[(index * 7) % 4])
  for (const dither of ['none', 'floyd-steinberg']) {
    // Entries are judged at the corner of a cell of four levels, where these colours lie but for white.
    assert.ok(worst(await tensorFrom(imageQuantize, { image, colors: 256, dither }), image) < 1e-6)
  }
})

test('a palette has no more colours than asked for, also for pictures of very many', async () => {
  const image = tensor([1, 300, 300, 3], (index) => {
    const pixel = Math.floor(index / 3)
    return [(pixel % 256) / 255, (Math.floor(pixel / 256) % 256) / 255, ((pixel * 31) % 256) / 255][index % 3]
  })
  for (const [colors, dither] of [
    [256, 'none'],
    [7, 'floyd-steinberg'],
    [1, 'bayer-16'],
  ] as const) {
    const { data } = await tensorFrom(imageQuantize, { image, colors, dither })
    const seen = new Set<string>()
    for (let at = 0; at < data.length; at += 3) seen.add(data.subarray(at, at + 3).join())
    assert.ok(seen.size <= colors && seen.size > colors / 2, `${seen.size} of ${colors}`)
  }
})

test('colours go to brightness and differences and come back', async () => {
  const image = noise([1, 5, 6, 3])
  const { outputs } = await callNode(imageRgbToYuv, { image })
  const [Y, U, V] = outputs as Tensor[]
  const back = await tensorFrom(imageYuvToRgb, { Y, U, V })
  assert.ok(worst(back, image) < 2e-3)
  const small = { Y, U: noise([1, 5, 5, 3]), V }
  await assert.rejects(callNode(imageYuvToRgb, small), fails('RuntimeError', /Sizes of tensors must match/))
})

test('a histogram counts the first picture only, and greys as three equal colours', async () => {
  const { outputs } = await callNode(imageHistogram, { image: tensor([2, 1, 2, 1], [0, 1, 0.5, 0.5]) })
  const [rgb, luminance, red] = outputs as number[][]
  assert.deepEqual([rgb[0], rgb[255], red[0], luminance[0], luminance[127]], [1, 1, 1, 1, 0])
})

test('the same seed gives the same noise, and no strength none', async () => {
  const image = noise([1, 7, 7, 3])
  const add = (seed: number | bigint, strength: number) => tensorFrom(imageAddNoise, { image, seed, strength })
  assert.equal(worst(await add(5, 0.5), await add(5n + 2n ** 32n, 0.5)), 0)
  assert.ok(worst(await add(5, 0.5), await add(6, 0.5)) > 0.1)
  assert.equal(worst(await add(5, 0), image), 0)
})

function meanOf({ data }: Tensor, channel: number): number {
  let sum = 0
  for (let at = channel; at < data.length; at += 3) sum += data[at]
  return (3 * sum) / data.length
}

const toned = (seed: number, low: number, range: number) => {
  const random = seededRandom(seed)
  return tensor([2, 24, 24, 3], (index) => low + range * random.next() * (index % 3 === 0 ? 1 : 0.6))
}

test('a picture takes over the colours of another, by every method', async () => {
  const [target, reference] = [toned(1, 0.5, 0.4), toned(2, 0.1, 0.3)]
  for (const method of ['reinhard_lab', 'mkl_lab', 'histogram']) {
    for (const key of ['per_frame', 'uniform', 'target_frame']) {
      const moved = await tensorFrom(colorTransfer, {
        image_target: target,
        image_ref: reference,
        method,
        source_stats: key,
        ...(key === 'target_frame' && { 'source_stats.target_index': 9 }),
        strength: 1,
      })
      for (const channel of [0, 1, 2]) {
        assert.ok(Math.abs(meanOf(moved, channel) - meanOf(reference, channel)) < 0.03, `${method} ${key}`)
      }
    }
  }
})

test('colours taken over from oneself change nothing, and no strength passes the picture on', async () => {
  const image = toned(3, 0.2, 0.5)
  const run = (method: string, strength: number) =>
    tensorFrom(colorTransfer, {
      image_target: image,
      image_ref: image,
      method,
      source_stats: 'per_frame',
      strength,
    })
  assert.equal(await run('mkl_lab', 0), image)
  for (const method of ['reinhard_lab', 'mkl_lab']) assert.ok(worst(await run(method, 1), image) < 2e-5, method)
  assert.ok(worst(await run('histogram', 1), image) <= 1 / 255)
})

test('compression loses more the higher it is, drops an odd row and column, and 0 does nothing', async () => {
  const image = tensor([1, 33, 47, 3], (index) => 0.5 + 0.3 * Math.sin(index / 40) + 0.1 * Math.sin(index * 7))
  const lossAt = async (rate: number) => {
    const { shape, data } = await tensorFrom(ltxvPreprocess, { image, img_compression: rate })
    assert.deepEqual(shape, [1, 32, 46, 3])
    let sum = 0
    for (let y = 0; y < 32; y++) {
      for (let i = 0; i < 46 * 3; i++) sum += Math.abs(data[y * 46 * 3 + i] - image.data[y * 47 * 3 + i])
    }
    return sum / data.length
  }
  const losses = [await lossAt(5), await lossAt(30), await lossAt(51)]
  assert.ok(losses[0] < losses[1] && losses[1] < losses[2] && losses[2] < 0.2, losses.join())
  assert.equal(await lossAt(100), losses[2])
  assert.equal(await tensorFrom(ltxvPreprocess, { image, img_compression: 0 }), image)
  const thin = { image: noise([1, 1, 9, 3]), img_compression: 9 }
  await assert.rejects(callNode(ltxvPreprocess, thin), fails('ValueError', /two pixels a side/))
})

const big = noise([1, 600, 600, 3])
const EVERY_INPUT: Readonly<Record<string, Value>> = {
  ...{ image: big, images: big, image_target: big, image_ref: big, Y: big, U: big, V: big },
  ...{ blur_radius: 3, sharpen_radius: 3, sigma: 1, alpha: 1, colors: 16, dither: 'floyd-steinberg', seed: 1 },
  ...{ strength: 0.5, factor: 1, mean: 0.5, std: 0.5, method: 'mkl_lab', source_stats: 'uniform' },
  ...{ low_threshold: 0.1, high_threshold: 0.2, operation: 'open', kernel_size: 5, img_compression: 30 },
}

const STOPPABLE = `
  ImageBlur ImageSharpen ImageQuantize ImageAddNoise AdjustBrightness AdjustContrast NormalizeImages
  ColorTransfer Canny Morphology ImageRGBToYUV ImageYUVToRGB ImageHistogram LTXVPreprocess
`
  .trim()
  .split(/\s+/)

for (const classType of STOPPABLE) {
  test(`${classType} stops when its run is cancelled`, async () => {
    const node = BUILT_IN_NODES.find((one) => one.classType === classType)
    assert.ok(node !== undefined)
    const names = Object.keys(node.definition.input.required ?? {})
    const inputs = Object.fromEntries(Object.entries(EVERY_INPUT).filter(([name]) => names.includes(name)))
    await assert.rejects(callNode(node, inputs, { allowedCheckpoints: 1 }), Interrupted)
  })
}
