/** FLAC, MP3, Ogg and WAV: comments and tags are blanked. */
import type { PartReader, Patch } from './patches.ts'
import { toJunk } from './pictures.ts'

const FLAC_PADDING = 1
// What the sound is, where to find moments in it, its sheet of tracks, its picture.
const FLAC_KEPT: ReadonlySet<number> = new Set([0, FLAC_PADDING, 3, 5, 6])

export async function blankFlac(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = 4; at + 4 <= reader.size; ) {
    const head = await reader.read(at, 4)
    const isLast = (head[0] & 0x80) !== 0
    const type = head[0] & 0x7f
    const length = Math.min(head.readUIntBE(1, 3), reader.size - at - 4)
    if (!FLAC_KEPT.has(type)) {
      patches.push({ at, length: 1, bytes: Buffer.of((head[0] & 0x80) | FLAC_PADDING) })
      patches.push({ at: at + 4, length })
    }
    if (isLast) return patches
    at += 4 + length
  }
  return patches
}

const ID3_BYTES = 10
const OLD_TAG_BYTES = 128
const APE_BYTES = 32

export async function blankMp3(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  const head = await reader.read(0, ID3_BYTES)
  if (head.toString('latin1', 0, 3) === 'ID3' && head.length === ID3_BYTES) {
    const length = (head[6] << 21) | (head[7] << 14) | (head[8] << 7) | head[9]
    patches.push({ at: ID3_BYTES, length: Math.min(length, reader.size - ID3_BYTES) })
  }
  let end = reader.size
  const old = await reader.read(Math.max(0, end - OLD_TAG_BYTES), 3)
  const behind: Patch[] = []
  if (old.toString('latin1') === 'TAG') {
    end -= OLD_TAG_BYTES
    behind.push({ at: end, length: OLD_TAG_BYTES })
  }
  const ape = await reader.read(Math.max(0, end - APE_BYTES), APE_BYTES)
  if (ape.toString('latin1', 0, 8) === 'APETAGEX') {
    const first = Math.max(0, end - ape.readUInt32LE(12) - APE_BYTES)
    behind.unshift({ at: first, length: end - first })
  }
  return inOrder([...patches, ...behind])
}

/** Where one begins inside of another, it begins behind it. */
function inOrder(patches: readonly Patch[]): Patch[] {
  let from = 0
  return patches.flatMap(({ at, length }) => {
    const first = Math.max(at, from)
    const end = at + length
    from = Math.max(from, end)
    return end > first ? [{ at: first, length: end - first }] : []
  })
}

const WAV_KEPT: ReadonlySet<string> = new Set(['fmt ', 'data', 'fact', 'cue ', 'smpl', 'PEAK'])

export async function blankWav(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = 12; at + 8 <= reader.size; ) {
    const head = await reader.read(at, 8)
    const length = head.readUInt32LE(4)
    const next = Math.min(reader.size, at + 8 + length + (length % 2))
    if (!WAV_KEPT.has(head.toString('latin1', 0, 4))) patches.push(...toJunk(at, next))
    at = next
  }
  return patches
}

interface OggPage {
  readonly at: number
  readonly content: number
  readonly whole: Buffer
  /** How long the parts are of which packets are made; one of less than 255 bytes ends a packet. */
  readonly parts: readonly number[]
}

const MAX_COMMENT_PAGES = 1000

/** The second packet of a stream has its comments. null: there is more than one stream, or another kind of sound. */
export async function blankOgg(reader: PartReader): Promise<Patch[] | null> {
  const first = await readPage(reader, 0)
  if (first === null) return null
  const pages: OggPage[] = []
  const packet: Buffer[] = []
  let isWhole = false
  for (let at = first.at + first.whole.length; !isWhole; ) {
    const page = await readPage(reader, at)
    if (page === null || pages.length >= MAX_COMMENT_PAGES) return null
    if (page.whole.readUInt32LE(14) !== first.whole.readUInt32LE(14)) return null
    const ending = page.parts.findIndex((length) => length < 255)
    isWhole = ending !== -1
    const length = page.parts.slice(0, isWhole ? ending + 1 : undefined).reduce((sum, each) => sum + each, 0)
    packet.push(page.whole.subarray(page.content, page.content + length))
    pages.push(page)
    at += page.whole.length
  }
  const joined = Buffer.concat(packet)
  const start = startOfComments(joined)
  if (start === null || !blankComments(joined, start)) return null
  return writePages(pages, packet, joined)
}

/** Each page with its part of the packet, and a checksum that fits. */
function writePages(pages: readonly OggPage[], packet: readonly Buffer[], joined: Buffer): Patch[] {
  let taken = 0
  return pages.map(({ at, content, whole }, index) => {
    const bytes = Buffer.from(whole)
    bytes.set(joined.subarray(taken, taken + packet[index].length), content)
    taken += packet[index].length
    bytes.writeUInt32LE(0, 22)
    bytes.writeUInt32LE(oggChecksum(bytes), 22)
    return { at, length: bytes.length, bytes }
  })
}

async function readPage(reader: PartReader, at: number): Promise<OggPage | null> {
  const head = await reader.read(at, 27 + 255)
  if (head.length < 27 || head.toString('latin1', 0, 4) !== 'OggS') return null
  const parts = [...head.subarray(27, 27 + head[26])]
  const length = 27 + head[26] + parts.reduce((sum, each) => sum + each, 0)
  const whole = Buffer.from(await reader.read(at, length))
  return whole.length < length ? null : { at, content: 27 + head[26], whole, parts }
}

function startOfComments(packet: Buffer): number | null {
  if (packet.toString('latin1', 0, 8) === 'OpusTags') return 8
  return packet.toString('latin1', 0, 7) === '\u0003vorbis' ? 7 : null
}

/** Their lengths stay, so that the packet does, too. False: they are damaged. */
function blankComments(packet: Buffer, start: number): boolean {
  if (start + 4 > packet.length) return false
  let at = start + 4 + packet.readUInt32LE(start)
  if (at + 4 > packet.length) return false
  const count = packet.readUInt32LE(at)
  at += 4
  for (let index = 0; index < count; index++) {
    if (at + 4 > packet.length) return false
    const end = at + 4 + packet.readUInt32LE(at)
    if (end > packet.length) return false
    packet.fill(' ', at + 4, end)
    at = end
  }
  // Opus lets anything follow; of Vorbis it is a single bit.
  if (packet[0] !== 3) packet.fill(0, at)
  return true
}

const OGG_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let rest = index << 24
  for (let bit = 0; bit < 8; bit++) rest = (rest & 0x80000000) === 0 ? rest << 1 : (rest << 1) ^ 0x04c11db7
  return rest >>> 0
})

function oggChecksum(bytes: Uint8Array): number {
  let rest = 0
  for (const byte of bytes) rest = ((rest << 8) ^ OGG_TABLE[(rest >>> 24) ^ byte]) >>> 0
  return rest
}
