/** Image files as the world has them: odd ones are read right, broken and hostile ones are node errors, never a crash. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { dumped, lastOf, openTestEngine, type TestEngine } from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine({ maxImagePixels: 1_000_000 })
})
after(() => engine[Symbol.asyncDispose]())

const GRAPH = {
  1: { class_type: 'LoadImage', inputs: { image: 'x.png' } },
  2: { class_type: 'TestDump', inputs: { source: ['1', 0] } },
  3: { class_type: 'TestDump', inputs: { source: ['1', 1] } },
}

interface Loaded {
  readonly shape: unknown
  readonly values: number[]
}

function tensor(value: JsonObject): Loaded {
  const bytes = Buffer.from(value.f32_b64 as string, 'base64')
  const values = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
  return { shape: value.shape, values }
}

async function load(bytes: Uint8Array): Promise<{ image: Loaded; mask: Loaded }> {
  const events = await engine.run(GRAPH, { files: { 'x.png': bytes } })
  return { image: tensor(dumped(events, '2')[0] as JsonObject), mask: tensor(dumped(events, '3')[0] as JsonObject) }
}

async function failureOf(bytes: Uint8Array) {
  return lastOf(await engine.run(GRAPH, { files: { 'x.png': bytes } }), 'failed').failure
}

function chunk(type: string, body: Uint8Array): Buffer {
  const part = Buffer.concat([Buffer.from(type, 'latin1'), body])
  const whole = Buffer.alloc(part.length + 8)
  whole.writeUInt32BE(body.length)
  part.copy(whole, 4)
  whole.writeUInt32BE(crc32(part), part.length + 4)
  return whole
}

/** A PNG that promises more pixels than it holds. */
function promisingPng(width: number, height: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const data = deflateSync(Buffer.alloc(1000))
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))])
}

const raw = (values: number[], width: number, height: number, channels: 1 | 2 | 3 | 4) =>
  sharp(Buffer.from(values), { raw: { width, height, channels } })

const close = (actual: number[], expected: number[]) =>
  actual.every((value, index) => Math.abs(value - expected[index]) < 1e-6)

test('grey becomes RGB, and grey with alpha becomes RGB and a mask', async () => {
  const grey = await load(await raw([0, 128], 2, 1, 1).toColourspace('b-w').png().toBuffer())
  assert.deepEqual(grey.image.shape, [1, 1, 2, 3])
  assert.ok(close(grey.image.values, [0, 0, 0, 128 / 255, 128 / 255, 128 / 255]))
  assert.deepEqual(grey.mask.shape, [1, 64, 64])
  const withAlpha = await load(await raw([10, 255, 20, 51], 2, 1, 2).png().toBuffer())
  assert.deepEqual(withAlpha.mask.shape, [1, 1, 2])
  assert.ok(close(withAlpha.mask.values, [0, 0.8]))
})

test('16 bit keeps its precision', async () => {
  const pixels = new Uint16Array([0, 1000, 65535, 300, 40000, 7])
  const deep = sharp(pixels, { raw: { width: 2, height: 1, channels: 3 } }).toColourspace('rgb16')
  const { image } = await load(await deep.png().toBuffer())
  assert.ok(
    close(
      image.values,
      [...pixels].map((value) => value / 65535),
    ),
  )
})

test('CMYK becomes RGB', async () => {
  const cmyk = await raw(new Array(64 * 3).fill(200), 8, 8, 3)
    .toColourspace('cmyk')
    .jpeg()
    .toBuffer()
  const { image } = await load(cmyk)
  assert.deepEqual(image.shape, [1, 8, 8, 3])
  assert.ok(image.values.every((value) => value > 0.6 && value < 0.95))
})

test('a photograph is turned upright', async () => {
  const lying = await raw([255, 0, 0, 0, 255, 0], 2, 1, 3).withMetadata({ orientation: 6 }).png().toBuffer()
  const { image } = await load(lying)
  assert.deepEqual(image.shape, [1, 2, 1, 3])
  assert.deepEqual(image.values.slice(0, 3), [1, 0, 0])
})

test('every frame of an animation becomes an image of the batch', async () => {
  const frames = await Promise.all(
    [10, 120, 240].map((level) =>
      raw(new Array(4 * 4 * 3).fill(level), 4, 4, 3)
        .png()
        .toBuffer(),
    ),
  )
  const gif = await sharp(frames, { join: { animated: true } })
    .gif()
    .toBuffer()
  const { image } = await load(gif)
  assert.deepEqual(image.shape, [3, 4, 4, 3])
})

test('a file under a wrong extension is read by its content', async () => {
  const { image } = await load(await raw([9, 9, 9], 1, 1, 3).webp({ lossless: true }).toBuffer())
  assert.ok(close(image.values, [9 / 255, 9 / 255, 9 / 255]))
})

test('a decompression bomb is refused by its header', async () => {
  const failure = await failureOf(promisingPng(30_000, 30_000))
  assert.equal(failure.exceptionType, 'PIL.Image.DecompressionBombError')
  assert.match(failure.message, /900000000 pixels\) exceeds limit of 1000000 pixels/)
})

test('truncated files of every format are an error that says so', async () => {
  const noise = Buffer.from(Array.from({ length: 64 * 64 * 3 }, (_, index) => (index * 7919) % 251))
  const whole = () => sharp(noise, { raw: { width: 64, height: 64, channels: 3 } })
  const files = [whole().png(), whole().jpeg(), whole().webp(), whole().gif(), whole().tiff()]
  for (const file of files) {
    const bytes = await file.toBuffer()
    const failure = await failureOf(bytes.subarray(0, Math.floor(bytes.length / 2)))
    assert.equal(failure.exceptionType, 'OSError', failure.message)
    assert.match(failure.message, /image file 'x\.png' is truncated or damaged/)
  }
})

test('what is no image at all cannot be identified', async () => {
  const svg = Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="5" height="5"><rect width="5" height="5"/></svg>',
  )
  for (const bytes of [Buffer.from('hello'), Buffer.alloc(0), Buffer.alloc(4096, 7), svg]) {
    const failure = await failureOf(bytes)
    assert.equal(failure.exceptionType, 'PIL.UnidentifiedImageError', failure.message)
    assert.equal(failure.message, "cannot identify image file 'x.png'")
  }
})

test('a file that the run does not hold is an error of the node', async () => {
  const { failure } = lastOf(await engine.run(GRAPH), 'failed')
  assert.equal(failure.exceptionType, 'FileNotFoundError')
  assert.equal(failure.message, 'Invalid image file: x.png')
  assert.equal(failure.nodeId, '1')
})
