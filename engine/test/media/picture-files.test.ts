/** Picture files that we put together ourselves: animated PNG, EXR, EXIF in WebP, notes in SVG. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32, inflateSync } from 'node:zlib'
import sharp from 'sharp'
import { readChunks } from '../../../lib/files/png-chunks.ts'
import { assembleApng } from '../../images/encode-png.ts'
import { insertWebpExif } from '../../images/encode-webp.ts'
import { encodeExr, REC_709, toLinearLight } from '../../images/exr.ts'
import { withMetadata } from '../../nodes/files/save-formats.ts'

const checkpoint = () => {}

async function still(level: number): Promise<Uint8Array> {
  const pixels = new Uint8Array(4 * 2 * 3).fill(level)
  return sharp(pixels, { raw: { width: 4, height: 2, channels: 3 } })
    .png()
    .toBuffer()
}

test('an animated PNG has its parts in order, every checksum right, its notes after the pictures', async () => {
  const stills = await Promise.all([still(10), still(20), still(30)])
  const apng = Buffer.from(assembleApng(stills, { frameMs: 166, texts: [['prompt', '{}']] }))
  const chunks = readChunks(apng)
  const types = chunks.map(({ type }) => type).join(' ')
  assert.equal(types, 'IHDR acTL fcTL IDAT fcTL fdAT fcTL fdAT comf IEND')
  for (let at = 8; at < apng.length; at += 12 + apng.readUInt32BE(at)) {
    const end = at + 8 + apng.readUInt32BE(at)
    assert.equal(apng.readUInt32BE(end), crc32(apng.subarray(at + 4, end)))
  }
  const body = (index: number) => Buffer.from(chunks[index].body)
  assert.deepEqual([body(1).readUInt32BE(0), body(1).readUInt32BE(4)], [3, 0])
  // Frame controls and frame data share one count.
  assert.deepEqual(
    [2, 4, 5, 6, 7].map((index) => body(index).readUInt32BE(0)),
    [0, 1, 2, 3, 4],
  )
  const control = body(2)
  assert.deepEqual(
    [4, 8, 12, 16].map((at) => control.readUInt32BE(at)),
    [4, 2, 0, 0],
  )
  assert.deepEqual([control.readUInt16BE(20), control.readUInt16BE(22)], [166, 1000])
  assert.deepEqual(
    inflateSync(body(7).subarray(4)),
    inflateSync(readChunks(stills[2]).find(({ type }) => type === 'IDAT')?.body ?? ''),
  )
  assert.equal(body(8).toString('latin1'), 'prompt\0{}')
  assert.deepEqual([...(await sharp(apng).raw().toBuffer()).subarray(0, 3)], [10, 10, 10])
})

test('a single frame is a still PNG, and very long frame times fit', async () => {
  const single = readChunks(assembleApng([await still(1)], { frameMs: 40, texts: [] }))
  assert.deepEqual(
    single.map(({ type }) => type),
    ['IHDR', 'IDAT', 'IEND'],
  )
  const slow = readChunks(assembleApng([await still(1), await still(2)], { frameMs: 100_000, texts: [] }))
  const control = Buffer.from(slow[2].body)
  assert.equal((control.readUInt16BE(20) / control.readUInt16BE(22)) * 1000, 100_000)
})

/** Attributes and pixels (interleaved as written) of an EXR of ours. */
function readExr(exr: Buffer, channels: number) {
  assert.equal(exr.readInt32LE(0), 20_000_630)
  const attributes = new Map<string, Buffer>()
  let at = 8
  const text = () => {
    const end = exr.indexOf(0, at)
    const found = exr.toString('latin1', at, end)
    at = end + 1
    return found
  }
  for (let name = text(); name !== ''; name = text()) {
    text()
    const size = exr.readInt32LE(at)
    attributes.set(name, exr.subarray(at + 4, at + 4 + size))
    at += 4 + size
  }
  const window = attributes.get('dataWindow') as Buffer
  const [width, height] = [window.readInt32LE(8) + 1, window.readInt32LE(12) + 1]
  const planes: number[][] = Array.from({ length: channels }, () => [])
  for (let block = 0; block < Math.ceil(height / 16); block++) {
    const offset = Number(exr.readBigUInt64LE(at + block * 8))
    assert.equal(exr.readInt32LE(offset), block * 16)
    const lines = Math.min(16, height - block * 16)
    const packed = exr.subarray(offset + 8, offset + 8 + exr.readInt32LE(offset + 4))
    const raw = unpack(packed, lines * width * channels * 4)
    for (let i = 0; i < lines * channels * width; i++)
      planes[Math.floor(i / width) % channels].push(raw.readFloatLE(i * 4))
  }
  return { attributes, width, height, planes }
}

function unpack(packed: Buffer, size: number): Buffer {
  if (packed.length === size) return packed
  const bytes = inflateSync(packed)
  for (let i = 1; i < bytes.length; i++) bytes[i] = bytes[i] + bytes[i - 1] - 128
  const half = (bytes.length + 1) >> 1
  return Buffer.from(bytes.map((_, i) => bytes[(i >> 1) + (i & 1 ? half : 0)]))
}

for (const channels of [1, 3, 4]) {
  test(`an EXR of ${channels} channels gives every float back, block by block`, () => {
    const [width, height] = [7, 37]
    const pixels = Float32Array.from(
      { length: width * height * channels },
      (_, i) => Math.sin(i) * 1000 ** (i % 3) - 0.5,
    )
    const texts = [
      ['prompt', '{"a": 1}'],
      ['a key that is longer than thirty-one letters', 'x'],
    ] as const
    const exr = Buffer.from(
      encodeExr({ width, height, channels, pixels }, { chromaticities: REC_709, texts, checkpoint }),
    )
    const read = readExr(exr, channels)
    assert.deepEqual([read.width, read.height], [width, height])
    assert.equal(read.attributes.get('prompt')?.toString(), '{"a": 1}')
    assert.equal(exr.readInt32LE(4), 2 | 0x400)
    assert.equal(read.attributes.get('chromaticities')?.readFloatLE(0), Math.fround(0.64))
    // Planes come in the order of their names: alpha, blue, green, red.
    const indexes = { 1: [0], 3: [2, 1, 0], 4: [3, 2, 1, 0] }[channels] as number[]
    indexes.forEach((index, plane) => {
      const expected = Array.from({ length: width * height }, (_, i) => pixels[i * channels + index])
      assert.deepEqual(read.planes[plane], expected)
    })
  })
}

test('an EXR key may not pose as one of the format', () => {
  const image = { width: 1, height: 1, channels: 1, pixels: new Float32Array(1) }
  const texts = [['dataWindow', 'x']] as const
  assert.throws(() => encodeExr(image, { chromaticities: REC_709, texts, checkpoint }), /extra_pnginfo/)
})

test('display values become linear light by the curve of their space; alpha stays', () => {
  const pixels = Float32Array.of(0.04, 0.5, 1.5, 0.5)
  const convert = (space: 'sRGB' | 'HDR' | 'linear') => [...toLinearLight(pixels, { channels: 4, space, checkpoint })]
  const near = (actual: number[], expected: number[]) => {
    actual.forEach((value, i) => {
      assert.ok(Math.abs(value - expected[i]) < 1e-6)
    })
  }
  near(convert('sRGB'), [0.04 / 12.92, 0.214_041_14, 2.537_155_7, 0.5])
  near(convert('HDR').slice(0, 2), [0.0016 / 3, 0.25 / 3])
  assert.deepEqual(convert('linear'), [...pixels])
})

/** Texts of the EXIF block of a WebP, by tag. */
async function exifOf(webp: Uint8Array): Promise<Record<number, string>> {
  const { exif } = await sharp(webp).metadata()
  assert.ok(exif !== undefined)
  const tiff = exif.subarray(exif.indexOf('II*\0'))
  const found: Record<number, string> = {}
  for (let i = 0; i < tiff.readUInt16LE(8); i++) {
    const at = 10 + i * 12
    const length = tiff.readUInt32LE(at + 4)
    const from = length > 4 ? tiff.readUInt32LE(at + 8) : at + 8
    found[tiff.readUInt16LE(at)] = tiff.toString('utf8', from, from + length - 1)
  }
  return found
}

test('a WebP of the simple kind gets an extended header, and remembers', async () => {
  const pixels = new Uint8Array(5 * 3 * 4).map((_, i) => i * 4)
  const plain = await sharp(pixels, { raw: { width: 5, height: 3, channels: 4 } })
    .webp({ lossless: true, exact: true })
    .toBuffer()
  const noted = insertWebpExif(
    plain,
    [
      ['prompt', '{"1": 2}'],
      ['workflow', '[]'],
      ['x', '1'],
    ],
    { width: 5, height: 3, hasAlpha: true },
  )
  assert.deepEqual(await exifOf(noted), { 272: 'prompt:{"1": 2}', 271: 'workflow:[]', 270: 'x:1' })
  const { data } = await sharp(noted).raw().toBuffer({ resolveWithObject: true })
  assert.deepEqual(new Uint8Array(data), pixels)
})

test('a note in a drawing comes right after the opening tag, and cannot become markup', () => {
  const drawing = '<?xml version="1.0"?><svg title="a>b"><g/><svg/></svg>'
  const noted = withMetadata(drawing, '{"x": "]]><script/>"}')
  assert.equal(noted.indexOf('<metadata>'), noted.indexOf('a>b">') + 6)
  assert.equal(noted.match(/<metadata>/g)?.length, 1)
  assert.ok(!noted.includes('"]]><script'))
  assert.ok(withMetadata('<svg/>', '{}').startsWith('<svg>'))
  assert.ok(withMetadata('<svg/>', '{}').endsWith('</svg>'))
  assert.equal(withMetadata('no drawing', '{}'), 'no drawing')
})
