/** Files that another library reads back as the very pixels that went in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import { readChunks } from '../../lib/files/png-chunks.ts'
import type { ImageView } from '../tensor/tensor.ts'
import { encodeDeepPng, encodePng } from './encode-png.ts'

type Size = { readonly width: number; readonly height: number; readonly channels: number; readonly batch?: number }

/** A ramp with noise, a flat part, and values beyond both ends. */
function picture({ width, height, channels, batch = 1 }: Size): ImageView {
  const data = new Float32Array(new SharedArrayBuffer(batch * height * width * channels * 4))
  for (let i = 0; i < data.length; i++) {
    const isFlat = Math.floor(i / 400) % 3 === 0
    data[i] = isFlat ? 0.25 : ((i * 2_654_435_761) % 1000) / 900 - 0.05 + (i / data.length) * 0.1
  }
  return { batch, height, width, channels, data }
}

function bytesOf({ data, height, width, channels }: ImageView, index: number): number[] {
  const count = height * width * channels
  const values = data.subarray(index * count, (index + 1) * count)
  return Array.from(values, (value) => Math.max(0, Math.min(255, Math.trunc(Math.fround(255 * value)))))
}

const options = { index: 0, level: 4, texts: [], checkpoint() {} } as const

test('8-bit pictures of any shape come back as they were', async () => {
  const sizes = [
    { width: 1, height: 1, channels: 3 },
    { width: 5, height: 3, channels: 4 },
    { width: 17, height: 40, channels: 3 },
    { width: 333, height: 77, channels: 4 },
  ]
  for (const size of sizes) {
    for (const level of [0, 1, 4, 9]) {
      const view = picture(size)
      const { data, info } = await sharp(await encodePng(view, { ...options, level }))
        .raw()
        .toBuffer({ resolveWithObject: true })
      assert.deepEqual([info.width, info.height, info.channels], [size.width, size.height, size.channels])
      assert.deepEqual([...data], bytesOf(view, 0))
    }
  }
})

test('a picture that is compressed in several bands is one valid stream', async () => {
  const view = picture({ width: 1100, height: 1300, channels: 3, batch: 2 })
  const png = await encodePng(view, { ...options, index: 1 })
  const { data } = await sharp(png, { failOn: 'warning' }).raw().toBuffer({ resolveWithObject: true })
  assert.ok(Buffer.from(bytesOf(view, 1)).equals(data))
})

test('grey and deep pictures come back as they were', async () => {
  for (const channels of [1, 3, 4]) {
    for (const bits of [8, 16] as const) {
      const view = picture({ width: 65, height: 33, channels })
      const png = await encodeDeepPng(view, { ...options, bits })
      const raw = sharp(png).toColourspace(
        channels === 1 ? (bits === 16 ? 'grey16' : 'b-w') : bits === 16 ? 'rgb16' : 'srgb',
      )
      const { data, info } = await raw
        .raw({ depth: bits === 16 ? 'ushort' : 'uchar' })
        .toBuffer({ resolveWithObject: true })
      assert.equal(info.channels, channels)
      const scale = 2 ** bits - 1
      const expected = Array.from(view.data, (value) =>
        Math.max(0, Math.min(scale, Math.trunc(Math.fround(scale * value)))),
      )
      const values = bits === 16 ? new Uint16Array(data.buffer, data.byteOffset, data.length / 2) : data
      assert.deepEqual([...values], expected)
    }
  }
})

test('texts stand between the header and the pixels, in order', async () => {
  const view = picture({ width: 2, height: 2, channels: 3 })
  const texts = [
    ['prompt', '{}'],
    ['workflow', '{"a": 1}'],
  ] as const
  const chunks = readChunks(await encodePng(view, { ...options, texts }))
  assert.deepEqual(
    chunks.map(({ type }) => type),
    ['IHDR', 'tEXt', 'tEXt', 'IDAT', 'IEND'],
  )
  assert.equal(Buffer.from(chunks[2].body).toString('latin1'), 'workflow\0{"a": 1}')
})

test('a cancel is noticed between bands', async () => {
  let looks = 0
  const checkpoint = () => {
    looks += 1
    if (looks === 3) throw new Error('cancelled')
  }
  const view = picture({ width: 1100, height: 2000, channels: 3 })
  await assert.rejects(encodePng(view, { ...options, checkpoint }), /cancelled/)
  assert.equal(looks, 3)
})
