import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import sharp from 'sharp'
import { PNG_SIGNATURE, readChunks, writeChunk } from '../png-chunks.ts'
import { findMetadata } from './blank-metadata.ts'
import { applyPatches } from './patches.ts'

const GRAPH = '{"1":{"class_type":"SecretNode"}}'
const PIECE = 7

async function* inPieces(bytes: Buffer, from = 0) {
  for (let at = from; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE)
}

/** null: it is of no kind that is known. */
async function blank(bytes: Buffer, from = 0): Promise<Buffer | null> {
  const patches = await findMetadata(bytes.length, async (at, length) => bytes.subarray(at, at + length))
  if (patches === null) return null
  let end = 0
  for (const { at, length } of patches) {
    assert.ok(at >= end && at + length <= bytes.length, 'patches rise, do not overlap, and stay inside')
    end = at + length
  }
  return Buffer.concat(await Array.fromAsync(applyPatches(inPieces(bytes, from), patches, from)))
}

/** Nothing of the graph is left, the length is the same, and any part is the part of the whole. */
async function mustBeBlank(bytes: Buffer): Promise<Buffer> {
  assert.ok(bytes.includes('SecretNode'), 'the test has something to hide')
  const blanked = (await blank(bytes)) as Buffer
  assert.equal(blanked.length, bytes.length)
  assert.ok(!blanked.includes('SecretNode') && !blanked.includes('class_type'))
  for (const from of [1, PIECE, Math.floor(bytes.length / 2)])
    assert.deepEqual(await blank(bytes, from), blanked.subarray(from))
  return blanked
}

const picture = () => sharp({ create: { width: 9, height: 5, channels: 3, background: '#804020' } })
const pixelsOf = (bytes: Buffer) => sharp(bytes, { animated: true }).raw().toBuffer()
const exif = { IFD0: { ImageDescription: `workflow:${GRAPH}`, Make: GRAPH } }

async function mustShowTheSame(bytes: Buffer): Promise<Buffer> {
  const blanked = await mustBeBlank(bytes)
  assert.deepEqual(await pixelsOf(blanked), await pixelsOf(bytes))
  return blanked
}

describe('pictures', () => {
  const chunk = (type: string, body: string | Buffer) => writeChunk({ type, body: Buffer.from(body) })
  async function png(...chunks: Buffer[]) {
    const plain = await picture().png().toBuffer()
    const end = plain.length - 12
    const head = PNG_SIGNATURE.length + 25
    const [first = Buffer.alloc(0), ...others] = chunks
    return Buffer.concat([plain.subarray(0, head), first, plain.subarray(head, end), ...others, plain.subarray(end)])
  }

  test('a PNG loses its texts wherever they stand, also in chunks that nobody knows and behind its end', async () => {
    const whole = await png(
      chunk('tEXt', `prompt\0${GRAPH}`),
      chunk('iTXt', `workflow\0\0\0\0\0${GRAPH}`),
      chunk('comf', GRAPH),
      chunk('eXIf', GRAPH),
    )
    const blanked = await mustShowTheSame(Buffer.concat([whole, Buffer.from(GRAPH)]))
    const chunks = readChunks(blanked)
    const end = chunks.findIndex(({ type }) => type === 'IEND')
    const kinds = new Set(chunks.slice(0, end + 1).map(({ type }) => type))
    for (const type of ['tEXt', 'iTXt', 'comf', 'eXIf']) assert.ok(!kinds.has(type), type)
    for (const each of chunks.slice(0, end + 1)) assert.deepEqual(Buffer.from(each.whole), writeChunk(each))
  })

  test('one that is cut off, or lies about its lengths, shows nothing of what follows', async () => {
    const whole = await png(chunk('tEXt', `prompt\0${GRAPH}`))
    for (let end = 9; end < whole.length; end += 3) {
      const blanked = await blank(whole.subarray(0, end))
      assert.ok(blanked !== null && !blanked.includes('SecretNode'), `cut at ${end}`)
    }
    const lies = Buffer.from(whole)
    lies.writeUInt32BE(0x7fffffff, PNG_SIGNATURE.length + 25)
    assert.ok(!(await blank(lies))?.includes('SecretNode'))
  })

  test('a JPEG loses EXIF, comments and what stands behind it, and keeps its colours', async () => {
    const whole = await picture().withExif(exif).withIccProfile('p3').jpeg({ progressive: true }).toBuffer()
    const comment = Buffer.concat([Buffer.of(0xff, 0xfe, 0, GRAPH.length + 2), Buffer.from(GRAPH)])
    const bytes = Buffer.concat([whole.subarray(0, 2), comment, whole.subarray(2), Buffer.from(GRAPH)])
    const blanked = await mustShowTheSame(bytes)
    assert.ok(blanked.includes('ICC_PROFILE'))
  })

  test('a WebP loses EXIF, plain and animated, and says that it has none', async () => {
    const blanked = await mustShowTheSame(await picture().withExif(exif).webp({ lossless: true }).toBuffer())
    assert.equal((await sharp(blanked).metadata()).exif, undefined)
    const gif = await sharp({ create: { width: 4, height: 8, channels: 3, background: '#222' } })
      .raw()
      .toBuffer()
    const animated = await sharp(gif, { raw: { width: 4, height: 8, channels: 3, pageHeight: 4 } })
      .withExif(exif)
      .webp({ loop: 0, delay: [100, 100] })
      .toBuffer()
    await mustShowTheSame(animated)
  })

  test('a GIF loses its comments', async () => {
    const whole = await picture().gif().toBuffer()
    const comment = Buffer.concat([Buffer.of(0x21, 0xfe, GRAPH.length), Buffer.from(GRAPH), Buffer.of(0)])
    const place = whole.indexOf(Buffer.of(0x2c, 0, 0, 0, 0))
    const at = whole.indexOf(Buffer.of(0x21, 0xf9)) === -1 ? place : whole.indexOf(Buffer.of(0x21, 0xf9))
    await mustShowTheSame(Buffer.concat([whole.subarray(0, at), comment, whole.subarray(at)]))
  })
})

describe('films, sounds and models', () => {
  const box = (type: string, ...content: (string | Buffer)[]): Buffer => {
    const body = Buffer.concat(content.map((each) => Buffer.from(each)))
    const head = Buffer.alloc(8)
    head.writeUInt32BE(body.length + 8)
    head.write(type, 4, 'latin1')
    return Buffer.concat([head, body])
  }
  const FTYP = box('ftyp', 'isom\0\0\x02\0')

  test('an MP4 loses what stands beside its tracks, at every level', async () => {
    const track = box('trak', box('tkhd', 'kept'), box('udta', GRAPH), box('mdia', box('meta', GRAPH)))
    const movie = box('moov', box('mvhd', 'kept'), track, box('udta', box('meta', GRAPH)), box('uuid', GRAPH))
    const bytes = Buffer.concat([
      FTYP,
      box('free', GRAPH),
      movie,
      box('mdat', 'film'),
      box('meta', GRAPH),
      box('zzzz', GRAPH),
    ])
    const blanked = await mustBeBlank(bytes)
    assert.ok(blanked.includes('mvhdkept') && blanked.includes('tkhdkept') && blanked.includes('mdatfilm'))
    assert.ok(!blanked.includes('udta') && !blanked.includes('meta'))
    const lies = Buffer.concat([FTYP, Buffer.of(0, 0, 0, 3), Buffer.from(`moov${GRAPH}`)])
    await mustBeBlank(lies)
  })

  test('a WebM loses its tags and attachments, also behind a cluster without a length', async () => {
    const element = (id: number[], content: Buffer | string, size?: number[]) => {
      const body = Buffer.from(content)
      return Buffer.concat([
        Buffer.of(...id),
        Buffer.of(...(size ?? [0x40 | (body.length >> 8), body.length & 0xff])),
        body,
      ])
    }
    const head = element([0x1a, 0x45, 0xdf, 0xa3], 'webm')
    const tags = element([0x12, 0x54, 0xc3, 0x67], GRAPH)
    const attachment = element([0x19, 0x41, 0xa4, 0x69], GRAPH)
    const open = element([0x1f, 0x43, 0xb6, 0x75], element([0xa3], 'frame'), [0xff])
    const segment = element([0x18, 0x53, 0x80, 0x67], Buffer.concat([tags, open, attachment]), [0xff])
    const blanked = await mustBeBlank(Buffer.concat([head, segment]))
    assert.ok(blanked.includes('frame') && blanked.includes('webm'))
  })

  test('a FLAC, an MP3, a WAV and an Ogg lose their comments', async () => {
    const block = (type: number, body: string) =>
      Buffer.concat([Buffer.of(type, 0, body.length >> 8, body.length & 0xff), Buffer.from(body)])
    const flac = Buffer.concat([
      Buffer.from('fLaC'),
      block(0, 'info'),
      block(4, GRAPH),
      block(0x82, GRAPH),
      Buffer.from('sound'),
    ])
    const sound = await mustBeBlank(flac)
    assert.ok(sound.includes('info') && sound.subarray(-5).equals(Buffer.from('sound')))
    assert.deepEqual([sound[12], sound[12 + 4 + GRAPH.length]], [1, 0x81])

    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0'), Buffer.of(GRAPH.length), Buffer.from(GRAPH)])
    const old = Buffer.concat([Buffer.from(`TAG${GRAPH}`), Buffer.alloc(128 - 3 - GRAPH.length)])
    await mustBeBlank(Buffer.concat([tag, Buffer.from('\xff\xfbsound', 'latin1'), old]))

    const riff = (type: string, body: string) => {
      const head = Buffer.from(`${type}....`)
      head.writeUInt32LE(body.length, 4)
      return Buffer.concat([head, Buffer.from(body), Buffer.alloc(body.length % 2)])
    }
    const wav = Buffer.concat([
      Buffer.from('RIFF....WAVE'),
      riff('fmt ', 'kept'),
      riff('LIST', GRAPH),
      riff('data', 'wave'),
    ])
    assert.ok((await mustBeBlank(wav)).includes('data\x04\0\0\0wave'))

    const page = (number: number, body: Buffer) => {
      const head = Buffer.alloc(28)
      head.write('OggS', 'latin1')
      head.writeUInt32LE(7, 14)
      head.writeUInt32LE(number, 18)
      head[26] = 1
      head[27] = body.length
      return Buffer.concat([head, body])
    }
    const words = (text: string) => Buffer.concat([Buffer.of(text.length, 0, 0, 0), Buffer.from(text)])
    const comments = Buffer.concat([
      Buffer.from('OpusTags'),
      words('vendor'),
      Buffer.of(1, 0, 0, 0),
      words(`prompt=${GRAPH}`),
    ])
    const ogg = await mustBeBlank(
      Buffer.concat([page(0, Buffer.from('OpusHead')), page(1, comments), page(2, Buffer.from('sound'))]),
    )
    assert.ok(ogg.includes('vendor') && ogg.includes('sound'))
  })

  test('a GLB loses the extras of its scene and is one still', async () => {
    const scene = JSON.stringify({
      asset: { version: '2.0', extras: { prompt: GRAPH } },
      nodes: [{ extras: GRAPH, mesh: 0 }],
    })
    const json = Buffer.from(scene.padEnd(Math.ceil(scene.length / 4) * 4))
    const head = Buffer.from('glTF................')
    head.writeUInt32LE(json.length, 12)
    head.write('JSON', 16, 'latin1')
    const blanked = await mustBeBlank(Buffer.concat([head, json, Buffer.from('rest')]))
    const told = JSON.parse(blanked.toString('utf8', 20, 20 + json.length))
    assert.deepEqual(told, { asset: { version: '2.0' }, nodes: [{ mesh: 0 }] })
  })
})

test('what is of no known kind is not let through, and noise of any kind ends in bounded time', async () => {
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('x'),
    Buffer.from(`{"a":1}${GRAPH}`),
    Buffer.from(GRAPH.padStart(400, ' ')),
  ])
    assert.equal(await blank(bytes), null)
  const heads = [
    '\x89PNG\r\n\x1a\n',
    '\xff\xd8\xff\xe0',
    'RIFF....WEBP',
    'RIFF....WAVE',
    'GIF89a',
    '....ftypisom',
    '\x1a\x45\xdf\xa3',
  ]
  for (const head of [...heads, 'glTF', 'fLaC', 'OggS', 'ID3'])
    for (let seed = 1; seed <= 40; seed++) {
      const noise = Buffer.alloc(600)
      for (let at = 0, state = seed; at < noise.length; at++) {
        state = (state * 48_271) % 2_147_483_647
        noise[at] = state & 0xff
      }
      await blank(Buffer.concat([Buffer.from(head, 'latin1'), noise]))
    }
})
