import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { readEmbeddedTexts } from './embedded-texts.ts'
import { memorySource } from './mp4-boxes.ts'
import { writeChunks } from './png-chunks.ts'

const JSON_TEXT = '{"a":"ä"}'

const u32 = (value: number, isLittle = false) => {
  const bytes = Buffer.alloc(4)
  if (isLittle) bytes.writeUInt32LE(value)
  else bytes.writeUInt32BE(value)
  return bytes
}
const box = (type: string, ...parts: Uint8Array[]) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([u32(body.length + 8), Buffer.from(type, 'latin1'), body])
}
const read = (bytes: Uint8Array) => readEmbeddedTexts(memorySource(bytes))

const body = (text: string) => Buffer.from(text, 'latin1')
const packed = (name: string, text: Uint8Array) => ({
  type: 'zTXt',
  body: Buffer.concat([body(`${name}\0\0`), deflateSync(text)]),
})
const international = (name: string, text: string, isPacked = false) => ({
  type: 'iTXt',
  body: Buffer.concat([
    body(isPacked ? `${name}\0\u0001\0\0\0` : `${name}\0\0\0en\0\0`),
    isPacked ? deflateSync(Buffer.from(text)) : Buffer.from(text),
  ]),
})

function png(...chunks: { type: string; body: Uint8Array }[]): Uint8Array {
  return writeChunks([
    { type: 'IHDR', body: Buffer.alloc(13) },
    { type: 'tEXt', body: body('plain\0text') },
    ...chunks,
    { type: 'IEND', body: Buffer.alloc(0) },
  ])
}

function webp(): Buffer {
  const text = Buffer.from(`workflow:${JSON_TEXT}\0`)
  const tiff = Buffer.concat([Buffer.from('MM\0*'), u32(8), Buffer.from([0, 1]), entry(text.length, 26), u32(0), text])
  return riff(tiff)
}

function entry(length: number, at: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt16BE(0x010f, 0)
  bytes.writeUInt16BE(2, 2)
  bytes.writeUInt32BE(length, 4)
  bytes.writeUInt32BE(at, 8)
  return bytes
}

function riff(tiff: Buffer): Buffer {
  const chunk = (type: string, body: Uint8Array) =>
    Buffer.concat([Buffer.from(type), u32(body.length, true), body, Buffer.alloc(body.length % 2)])
  const chunks = Buffer.concat([chunk('VP8 ', Buffer.alloc(3)), chunk('EXIF', tiff)])
  return Buffer.concat([Buffer.from('RIFF'), u32(chunks.length + 4, true), Buffer.from('WEBP'), chunks])
}

function flac(): Buffer {
  const comment = Buffer.from(`prompt=${JSON_TEXT}`)
  const body = Buffer.concat([u32(3, true), Buffer.from('me!'), u32(1, true), u32(comment.length, true), comment])
  const head = (type: number, length: number) => Buffer.from([type, 0, length >> 8, length & 0xff])
  return Buffer.concat([Buffer.from('fLaC'), head(0, 4), Buffer.alloc(4), head(0x84, body.length), body])
}

function mp4(isBare: boolean): Buffer {
  const hdlr = box('hdlr', Buffer.alloc(24))
  const key = (name: string) => Buffer.concat([u32(name.length + 8), Buffer.from(`mdta${name}`)])
  const keys = box('keys', u32(0), u32(1), key('workflow'))
  const item = Buffer.concat([u32(1), u32(0), Buffer.from(JSON_TEXT)])
  const comment = Buffer.concat([u32(1), u32(0), Buffer.from('{"prompt":"{\\"b\\":1}"}')])
  const data = (body: Buffer) => box('data', body)
  const list = box('ilst', box('\0\0\0\u0001', data(item)), box('\xa9cmt', data(comment)))
  const meta = box('meta', ...(isBare ? [] : [u32(0)]), hdlr, keys, list)
  return Buffer.concat([
    box('ftyp', Buffer.from('isom')),
    box('mdat', Buffer.alloc(50)),
    box('moov', box('udta', meta)),
  ])
}

function safetensors(): Buffer {
  const header = Buffer.from(JSON.stringify({ __metadata__: { prompt: JSON_TEXT, count: 3 }, x: { dtype: 'F32' } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, Buffer.alloc(100)])
}

test('every kind of file gives its texts', () => {
  assert.deepEqual(
    read(png(packed('prompt', body('small')), international('workflow', JSON_TEXT))),
    new Map([
      ['prompt', 'small'],
      ['workflow', JSON_TEXT],
    ]),
  )
  assert.deepEqual(read(png(international('workflow', JSON_TEXT, true))), new Map([['workflow', JSON_TEXT]]))
  assert.deepEqual(read(png({ type: 'tEXt', body: body('prompt\0plain') })), new Map([['prompt', 'plain']]))
  assert.deepEqual(read(webp()), new Map([['workflow', JSON_TEXT]]))
  assert.deepEqual(read(flac()), new Map([['prompt', JSON_TEXT]]))
  for (const isBare of [true, false]) {
    assert.deepEqual(
      read(mp4(isBare)),
      new Map([
        ['workflow', JSON_TEXT],
        ['prompt', '{"b":1}'],
      ]),
    )
  }
  assert.deepEqual(read(safetensors()), new Map([['prompt', JSON_TEXT]]))
})

test('anything else is no such file', () => {
  for (const text of ['', '{"nodes":[]}', 'RIFFxxxxWAVE', 'plain text that is long enough']) {
    assert.equal(read(Buffer.from(text)), null)
  }
})

test('a file that is cut or damaged anywhere ends the reading, and nothing else', () => {
  for (const file of [
    png(packed('prompt', body('small')), international('workflow', JSON_TEXT, true)),
    webp(),
    flac(),
    mp4(true),
    mp4(false),
    safetensors(),
  ]) {
    for (let at = 0; at < file.length; at++) {
      read(file.subarray(0, at))
      for (const value of [0, 1, 0x7f, 0xff]) {
        const damaged = Buffer.from(file)
        damaged[at] = value
        read(damaged)
      }
    }
  }
})

test('a text that unpacks to far more than any workflow is left out', () => {
  const bomb = deflateSync(Buffer.alloc(40_000_000))
  const body = Buffer.concat([Buffer.from('workflow\0\0'), bomb])
  assert.deepEqual(read(writeChunks([{ type: 'zTXt', body }])), new Map())
})

test('of a picture only the first text of each name that counts is unpacked, all within one bound', () => {
  const million = Buffer.alloc(1_000_000, 'x')
  const others = Array.from({ length: 40 }, (_, index) => packed(`other ${index}`, million))
  const texts = read(png(...others, packed('workflow', body('first')), packed('workflow', million)))
  assert.deepEqual(texts, new Map([['workflow', 'first']]))
  const half = Buffer.alloc(20_000_000, 'x')
  assert.deepEqual(read(png(packed('prompt', half), packed('workflow', half))), new Map())
})

test('a text with zeros inside is trimmed at its end alone', () => {
  const text = Buffer.concat([body('workflow:a'), Buffer.alloc(1_000_000), body('b\0\0')])
  const tiff = Buffer.concat([Buffer.from('MM\0*'), u32(8), Buffer.from([0, 1]), entry(text.length, 26), u32(0), text])
  assert.equal(read(riff(tiff))?.get('workflow')?.length, 1_000_002)
})

test('entries that all point to the same bytes count once each', () => {
  const filler = Buffer.alloc(1_000_000, 'x')
  const texts = (count: number) => {
    const at = 8 + 2 + 12 * (count + 1) + 4
    const wanted = body('workflow:{}\0')
    const entries = [...Array<Buffer>(count).fill(entry(filler.length, at)), entry(wanted.length, at + filler.length)]
    const head = [Buffer.from('MM\0*'), u32(8), Buffer.from([0, count + 1]), ...entries, u32(0)]
    return read(riff(Buffer.concat([...head, filler, wanted])))
  }
  assert.deepEqual(texts(3), new Map([['workflow', '{}']]))
  assert.deepEqual(texts(40), new Map())
})
