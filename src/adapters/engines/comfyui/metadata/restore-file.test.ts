import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { restoreFile } from './restore-file.ts'
import type { RewrittenNames } from './rewritten-names.ts'

const FOLDER = 'atelier/0199b3f4-1d2e-7a3b-8c4d-5e6f70819234-2'
const HASH = 'ab'.repeat(32)
const NAMES: RewrittenNames = {
  folder: FOLDER,
  staged: new Map([
    ['Kätzchen "1".png', `atelier/${HASH}.png`],
    ['same.png', `atelier/${HASH}-.png`],
  ]),
  extraInput: 'atelier_run',
}

/** As the caller sent it, and as the server got it. */
function graphs(): { readonly asked: object; readonly sent: object } {
  const build = (prefix: string, first: string, second: string, extra: object) => ({
    '1': { class_type: 'LoadImage', inputs: { image: first } },
    '2': { class_type: 'LoadImage', inputs: { image: second } },
    '3': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: `${prefix}a "b" \\ ü`, ...extra } },
    '4': { class_type: 'Silent', inputs: { ...extra } },
  })
  return {
    asked: build('', 'Kätzchen "1".png', 'same.png', {}),
    sent: build(`${FOLDER}/`, `atelier/${HASH}.png`, `atelier/${HASH}-.png`, { atelier_run: '11111111-2222' }),
  }
}

/** As Python's json.dumps writes it. */
function dumps(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(dumps).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, item]) => `${dumps(name)}: ${dumps(item)}`)
      .join(', ')}}`
  }
  return JSON.stringify(value).replaceAll(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

const SENT = dumps(graphs().sent)
const ASKED = graphs().asked

/** In pieces of every size, down to single bytes. */
async function restored(bytes: Buffer, filename: string, pieceBytes = 7): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield Buffer.from(bytes.subarray(at, at + pieceBytes))
  }
  const parts: Uint8Array[] = []
  for await (const part of restoreFile(pieces(), filename, NAMES)) parts.push(Buffer.from(part))
  return Buffer.concat(parts)
}

function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(data.length)
  const body = Buffer.concat([Buffer.from(type), data])
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc32(body))
  return Buffer.concat([head, body, crc])
}

function picture(text: string): Buffer {
  // Bytes that look like a name inside the picture itself are picture.
  const pixels = chunk('IDAT', Buffer.from(`"${FOLDER}/x"`))
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', Buffer.alloc(13)),
    chunk('tEXt', Buffer.from(`prompt\0${text}`)),
    pixels,
    chunk('comf', Buffer.from(`prompt\0${text}`)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** The bitwise definition of the checksum of Ogg. */
function oggChecksum(page: Buffer): number {
  let value = 0
  for (const byte of page) {
    value = (value ^ (byte << 24)) >>> 0
    for (let bit = 0; bit < 8; bit++) value = (value & 0x80000000 ? (value << 1) ^ 0x04c11db7 : value << 1) >>> 0
  }
  return value
}

function oggPage(body: Buffer, granule: bigint): Buffer {
  const segments = Math.ceil(body.length / 255)
  const head = Buffer.alloc(27 + segments)
  head.write('OggS')
  head.writeBigInt64LE(granule, 6)
  head[26] = segments
  for (let index = 0; index < segments; index++) head[27 + index] = Math.min(255, body.length - index * 255)
  const page = Buffer.concat([head, body])
  page.writeUInt32LE(oggChecksum(page), 22)
  return page
}

function element(id: string, data: Buffer): Buffer {
  const size = Buffer.alloc(8)
  size.writeBigUInt64BE((1n << 56n) | BigInt(data.length))
  return Buffer.concat([Buffer.from(id, 'hex'), size, data])
}

function tagsWithChecksum(data: Buffer): Buffer {
  const crc = Buffer.from('bf8400000000', 'hex')
  crc.writeUInt32LE(crc32(data), 2)
  return element('1254c367', Buffer.concat([crc, data]))
}

/** The JSON between two marks. */
function graphIn(bytes: Buffer, before: string, after: string): unknown {
  const start = bytes.indexOf(before) + before.length
  return JSON.parse(bytes.toString('utf8', start, bytes.indexOf(after, start)))
}

describe('the graph in a saved file', () => {
  test('in a PNG is exactly the text that a server writes for the graph as it was sent', async () => {
    for (const pieceBytes of [1, 7, 100_000]) {
      const result = await restored(picture(SENT), 'a.png', pieceBytes)
      assert.equal(result.equals(picture(dumps(ASKED))), true)
    }
  })

  test('keeps its length where a container counts bytes: pictures, sound, video, text', async () => {
    const heads = { 'a.webp': 'RIFF0000WEBP', 'a.flac': 'fLaC', 'a.mp3': 'ID3', 'a.mp4': '0000ftypisom', 'a.json': '' }
    for (const [filename, head] of Object.entries(heads)) {
      for (const pieceBytes of [1, 13, 100_000]) {
        const file = Buffer.from(`${head}<prompt:${SENT}>${'\u0001 tail'.repeat(100)}`)
        const result = await restored(file, filename, pieceBytes)
        assert.equal(result.length, file.length, filename)
        assert.deepEqual(graphIn(result, '<prompt:', '>'), ASKED, filename)
        assert.equal(result.includes('atelier'), false, filename)
        assert.equal(result.subarray(-600).equals(file.subarray(-600)), true, filename)
      }
    }
  })

  test('is found inside texts of JSON, however deep', async () => {
    const nested = dumps({ comment: dumps({ prompt: SENT }) })
    const result = await restored(Buffer.from(`0000ftypisom${nested}`), 'a.mp4', 5)
    const comment = JSON.parse(result.toString('utf8', 12)) as { comment: string }
    assert.deepEqual(JSON.parse(JSON.parse(comment.comment).prompt), ASKED)
  })

  test('in Ogg goes over pages, each of which gets its checksum', async () => {
    const comments = Buffer.from(`OpusTags<prompt:${SENT}>`)
    const cuts = [0, 100, 300, comments.length]
    const pages = cuts.slice(1).map((end, index) => {
      return oggPage(comments.subarray(cuts[index], end), index === 2 ? 0n : -1n)
    })
    const sound = oggPage(Buffer.from(`"${FOLDER}/sound"`), 960n)
    const first = oggPage(Buffer.from('OpusHead'), 0n)
    const result = await restored(Buffer.concat([first, ...pages, sound]), 'a.opus')
    assert.equal(result.subarray(0, first.length).equals(first), true)
    assert.equal(result.subarray(-sound.length).equals(sound), true, 'sound is sound')
    const bodies: Buffer[] = []
    for (let at = 0; at < result.length; ) {
      const count = result[at + 26]!
      const body = result.subarray(at + 27, at + 27 + count).reduce((sum, size) => sum + size, 0)
      const page = Buffer.from(result.subarray(at, at + 27 + count + body))
      const told = page.readUInt32LE(22)
      page.writeUInt32LE(0, 22)
      assert.equal(told, oggChecksum(page))
      bodies.push(page.subarray(27 + count))
      at += page.length
    }
    assert.deepEqual(graphIn(Buffer.concat(bodies), '<prompt:', '>'), ASKED)
  })

  test('in Matroska is in tags with a checksum; clusters pass untouched', async () => {
    const cluster = element('1f43b675', Buffer.from(`"${FOLDER}/frame"`))
    const inside = Buffer.concat([tagsWithChecksum(Buffer.from(`<prompt:${SENT}>`)), cluster])
    const header = element('1a45dfa3', Buffer.from('webm'))
    const file = Buffer.concat([header, element('18538067', inside)])
    const result = await restored(file, 'a.webm')
    assert.equal(result.length, file.length)
    assert.deepEqual(graphIn(result, '<prompt:', '>'), ASKED)
    assert.equal(result.subarray(-cluster.length).equals(cluster), true)
    const crcAt = result.indexOf(Buffer.from('bf84', 'hex'))
    const data = result.subarray(crcAt + 6, result.length - cluster.length)
    assert.equal(result.readUInt32LE(crcAt + 2), crc32(data))
  })

  test('files that are not known to bear it, and files cut short, pass byte for byte', async () => {
    const archive = Buffer.from(`PK\u0003\u0004${SENT}`)
    assert.equal((await restored(archive, 'a.zip')).equals(archive), true)
    const whole = picture(SENT)
    for (const cut of [0, 3, 9, 40, 60, 300]) {
      const short = whole.subarray(0, cut)
      assert.equal((await restored(short, 'a.png')).equals(short), true)
    }
    const odd = Buffer.concat([Buffer.from('1a45dfa3', 'hex'), Buffer.alloc(40)])
    assert.equal((await restored(odd, 'a.webm')).equals(odd), true)
    const page = Buffer.from('OggS\u0000\u0000')
    assert.equal((await restored(page, 'a.opus')).equals(page), true)
  })

  test('a name that does not fit where the server wrote another one stays as the server wrote it', async () => {
    const staged = new Map([['a name that is longer than the other one.png', 'atelier/x.png']])
    async function* bytes() {
      yield Buffer.from('fLaC{"image": "atelier/x.png", "p": "atelier/x.pngs"}')
    }
    let text = ''
    for await (const part of restoreFile(bytes(), 'a.flac', { ...NAMES, staged })) text += Buffer.from(part).toString()
    assert.equal(text, 'fLaC{"image": "atelier/x.png", "p": "atelier/x.pngs"}')
  })
})
