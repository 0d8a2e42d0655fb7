import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadSharp } from './load-sharp.ts'
import { sniffType } from './mime.ts'
import { readFrom, readPictureSize } from './picture-size.ts'

async function sizeOf(file: Buffer): Promise<string | null> {
  const size = await readPictureSize(readFrom(file), sniffType(file) ?? '')
  return size === null ? null : `${size.width} x ${size.height}`
}

const picture = () =>
  loadSharp()({ create: { width: 37, height: 21, channels: 3, background: { r: 200, g: 10, b: 90 } } })

test('the size of a picture is in its headers, whatever its format', async () => {
  const made = await Promise.all(
    [
      ...[picture().png(), picture().jpeg(), picture().jpeg({ progressive: true }), picture().gif(), picture().avif()],
      ...[picture().webp(), picture().webp({ lossless: true }), picture().ensureAlpha(0.5).webp(), picture().tiff()],
    ].map((coded) => coded.toBuffer()),
  )
  for (const file of made) assert.equal(await sizeOf(file), '37 x 21', sniffType(file) ?? '')
})

test('a JPEG whose head is full of other things is read on', async () => {
  const file = await picture().jpeg().toBuffer()
  const segment = Buffer.alloc(60_000)
  segment.writeUInt16BE(0xffe1, 0)
  segment.writeUInt16BE(segment.length - 2, 2)
  assert.equal(
    await sizeOf(Buffer.concat([file.subarray(0, 2), segment, segment, segment, file.subarray(2)])),
    '37 x 21',
  )
})

test('formats that only say it in numbers or words', async () => {
  const bmp = Buffer.alloc(54)
  bmp.write('BM')
  bmp.writeUInt32LE(40, 14)
  bmp.writeInt32LE(300, 18)
  bmp.writeInt32LE(-200, 22)
  assert.equal(await sizeOf(bmp), '300 x 200')
  const exr = Buffer.concat([
    Buffer.from('\x76\x2f\x31\x01....dataWindow\0box2i\0', 'latin1'),
    Buffer.from(new Int32Array([16, 0, 0, 639, 479]).buffer),
  ])
  assert.equal(await sizeOf(exr), '640 x 480')
  assert.equal(await sizeOf(Buffer.from('#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 512 +X 768\n....')), '768 x 512')
})

test('what ends too soon, or has no size, has none', async () => {
  for (const coded of [picture().png(), picture().jpeg(), picture().webp(), picture().gif(), picture().tiff()]) {
    const file = await coded.toBuffer()
    assert.equal(await sizeOf(file.subarray(0, 9)), null)
  }
  assert.equal(await sizeOf(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), null)
  assert.equal(await sizeOf(Buffer.concat([Buffer.from('ffd8ff', 'hex'), Buffer.alloc(100, 0xff)])), null)
})
