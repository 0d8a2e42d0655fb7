/** Moving pictures that another library reads back frame by frame. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import type { ImageView } from '../tensor/tensor.ts'
import { encodeWebp, readRiff, type WebpSettings } from './encode-webp.ts'

const [WIDTH, HEIGHT] = [41, 30]
const SETTINGS: WebpSettings = { lossless: true, quality: 80, effort: 4, frameMs: 100 }

type Bytes = (at: { readonly x: number; readonly y: number; readonly channel: number }) => number

const noise: Bytes = ({ x, y, channel }) => {
  const mixed = Math.imul((x * 41 + y) * 3 + channel + 1, 0x9e37_79b1)
  return ((mixed ^ (mixed >>> 15)) >>> 3) % 251
}
/** The picture below it, but for a square of another colour. */
const square =
  (left: number, top: number, below: Bytes = noise): Bytes =>
  (at) =>
    at.x >= left && at.x < left + 5 && at.y >= top && at.y < top + 4 && at.channel < 3 ? 250 - at.channel : below(at)

function batchOf(images: readonly Bytes[], channels = 3): ImageView {
  const data = new Float32Array(new SharedArrayBuffer(images.length * WIDTH * HEIGHT * channels * 4))
  let to = 0
  for (const image of images) {
    for (let y = 0; y < HEIGHT; y++) {
      for (let x = 0; x < WIDTH; x++) {
        for (let channel = 0; channel < channels; channel++) data[to++] = (image({ x, y, channel }) + 0.5) / 255
      }
    }
  }
  return { batch: images.length, height: HEIGHT, width: WIDTH, channels, data }
}

const encode = (view: ImageView, settings: Partial<WebpSettings> = {}) =>
  encodeWebp(view, { ...SETTINGS, ...settings }, () => {})

/** The bytes of every image that a view holds. */
function bytesOf({ data }: ImageView): Uint8Array {
  return Uint8Array.from(data, (value) => Math.trunc(Math.fround(255 * value)))
}

/** What is seen of every frame, without the alpha channel that all frames have in common where `channels` is 3. */
async function seen(webp: Uint8Array, channels = 3): Promise<Uint8Array> {
  const picture = sharp(webp, { pages: -1 })
  return new Uint8Array(await (channels === 3 ? picture.removeAlpha() : picture.ensureAlpha()).raw().toBuffer())
}

const sizesOf = (webp: Uint8Array) =>
  readRiff(webp)
    .filter(({ id }) => id === 'ANMF')
    .map(({ body }) => body.length)

test('frames hold what changed, wherever it is, and come back exactly', async () => {
  const places: readonly [number, number][] = [
    [0, 0],
    [WIDTH - 5, 0],
    [3, HEIGHT - 4],
    [WIDTH - 4, HEIGHT - 3],
    [17, 11],
  ]
  const view = batchOf([noise, ...places.map(([left, top]) => square(left, top))])
  const webp = await encode(view)
  assert.deepEqual(await seen(webp), bytesOf(view))
  const [first, ...rest] = sizesOf(webp)
  for (const size of rest) assert.ok(size < first / 2, `a frame takes ${size} bytes, the first ${first}`)
})

test('frames with alpha come back exactly, also where they become more transparent', async () => {
  const solid: Bytes = (at) => (at.channel === 3 ? 255 : noise(at))
  const half: Bytes = (at) => (at.channel === 3 && at.x > 9 ? 128 : solid(at))
  const view = batchOf([solid, half, square(3, 3, solid), half], 4)
  assert.deepEqual(await seen(await encode(view), 4), bytesOf(view))
  const lossy = await seen(await encode(view, { lossless: false }), 4)
  const alphaOf = (bytes: Uint8Array) => bytes.filter((_, index) => index % 4 === 3)
  assert.deepEqual(alphaOf(lossy), alphaOf(bytesOf(view)))
})

test('equal images become one frame that is shown for longer', async () => {
  const moved = square(8, 8)
  const webp = await encode(batchOf([noise, noise, noise, moved, moved, noise]))
  const { pages, delay } = await sharp(webp).metadata()
  assert.deepEqual({ pages, delay }, { pages: 3, delay: [300, 200, 100] })
  assert.deepEqual(await seen(webp), bytesOf(batchOf([noise, moved, noise])))
})

test('images that are all equal are a still picture', async () => {
  const webp = await encode(batchOf([noise, noise, noise]))
  assert.deepEqual(
    readRiff(webp).map(({ id }) => id),
    ['VP8L'],
  )
})

test('a frame is not shown for longer than the format can say: what remains is a frame of its own', async () => {
  const webp = await encode(batchOf([noise, noise, square(1, 1)]), { frameMs: 10_000_000 })
  const { delay } = await sharp(webp).metadata()
  assert.deepEqual(delay, [10_000_000, 10_000_000, 10_000_000])
  assert.deepEqual(await seen(webp), bytesOf(batchOf([noise, noise, square(1, 1)])))
})

test('a lossy frame is as near to its image as a still picture of that quality', async () => {
  const smooth =
    (phase: number): Bytes =>
    ({ x, y, channel }) =>
      128 + 100 * Math.sin((x * (channel + 1)) / 5 + phase) * Math.cos(y / (4 + channel))
  const images = [smooth(0), smooth(1), smooth(2)]
  const view = batchOf(images)
  const frames = await seen(await encode(view, { lossless: false }))
  const stills: Uint8Array[] = []
  for (const image of images) {
    const raw = { width: WIDTH, height: HEIGHT, channels: 3 } as const
    const still = sharp(bytesOf(batchOf([image])), { raw }).webp({ quality: 80, effort: 4 })
    stills.push(await seen(await still.toBuffer()))
  }
  assert.deepEqual(Buffer.from(frames), Buffer.concat(stills))
})

test('a run that is broken off encodes nothing more', async () => {
  let looks = 0
  const broken = encodeWebp(batchOf([noise, square(1, 1), square(9, 9)]), SETTINGS, () => {
    if (++looks > 3) throw new Error('broken off')
  })
  await assert.rejects(broken, /broken off/)
})
