/** MP4 and MOV, Matroska and WebM, GLB: everything that is not the film or the model is blanked. */
import type { PartReader, Patch } from './patches.ts'

const FREE = Buffer.from('free', 'latin1')
// At the top of a file; all else there is data of some program.
const MP4_KEPT: ReadonlySet<string> = new Set([
  ...['ftyp', 'styp', 'moov', 'moof', 'mdat', 'mfra', 'sidx', 'ssix', 'pdin', 'prft', 'free', 'skip', 'wide'],
])
const MP4_HIDDEN: ReadonlySet<string> = new Set(['udta', 'meta', 'uuid'])
const MP4_PARENTS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'minf', 'moof', 'traf', 'mvex', 'edts'])
const MAX_DEPTH = 8

export async function blankMp4(reader: PartReader, start = 0, end = reader.size, depth = 0): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = start; at + 8 <= end; ) {
    const head = await reader.read(at, 16)
    const short = head.readUInt32BE(0)
    const type = head.toString('latin1', 4, 8)
    const headBytes = short === 1 ? 16 : 8
    const size = short === 1 && head.length === 16 ? Number(head.readBigUInt64BE(8)) : short === 0 ? end - at : short
    // A damaged length: what follows cannot be told apart any more.
    if (size < headBytes) return [...patches, { at, length: end - at }]
    const next = Math.min(end, at + size)
    const isHidden = depth === 0 ? !MP4_KEPT.has(type) : MP4_HIDDEN.has(type)
    if (isHidden || ['free', 'skip', 'wide'].includes(type))
      patches.push({ at: at + 4, length: 4, bytes: FREE }, { at: at + headBytes, length: next - at - headBytes })
    else if (MP4_PARENTS.has(type) && depth < MAX_DEPTH)
      for (const patch of await blankMp4(reader, at + headBytes, next, depth + 1)) patches.push(patch)
    at = next
  }
  return patches
}

const SEGMENT = 0x18538067
const CLUSTER = 0x1f43b675
const TAGS = 0x1254c367
const ATTACHMENTS = 0x1941a469
const VOID = 0xec

interface Element {
  readonly id: number
  /** Where its content begins. */
  readonly content: number
  /** null: it says that it goes on for as long as it goes on. */
  readonly end: number | null
}

export async function blankMatroska(reader: PartReader): Promise<Patch[]> {
  const patches: Patch[] = []
  for (let at = 0; at < reader.size; ) {
    const element = await readElement(reader, at)
    if (element === null) return [...patches, { at, length: reader.size - at }]
    const { id, content, end } = element
    // A segment is the file; a cluster without a length is stepped through.
    const isEntered = id === SEGMENT || (end === null && id === CLUSTER)
    if (!isEntered && end === null) return [...patches, { at, length: reader.size - at }]
    const next = isEntered ? content : Math.min(reader.size, end ?? reader.size)
    if (id === TAGS || id === ATTACHMENTS || id === VOID) patches.push(...toVoid(at, next))
    at = next
  }
  return patches
}

async function readElement(reader: PartReader, at: number): Promise<Element | null> {
  const head = await reader.read(at, 12)
  const idBytes = Math.clz32(head[0] ?? 0) - 23
  if (head.length < 2 || idBytes > 4 || head.length <= idBytes) return null
  const sizeBytes = Math.clz32(head[idBytes]) - 23
  if (sizeBytes > 8 || head.length < idBytes + sizeBytes) return null
  const content = at + idBytes + sizeBytes
  let size = BigInt(head[idBytes]) & BigInt((1 << (8 - sizeBytes)) - 1)
  for (let index = 1; index < sizeBytes; index++) size = (size << 8n) | BigInt(head[idBytes + index])
  const isOpen = size === (1n << BigInt(7 * sizeBytes)) - 1n
  return { id: head.readUIntBE(0, idBytes), content, end: isOpen ? null : content + Number(size) }
}

function toVoid(at: number, end: number): Patch[] {
  const total = end - at
  if (total < 2) return [{ at, length: total }]
  // The length of the content in eight bytes where they fit, else in one.
  const isLong = total >= 9
  const head = Buffer.alloc(isLong ? 9 : 2)
  head[0] = VOID
  if (isLong) head.writeBigUInt64BE((1n << 56n) | BigInt(total - 9), 1)
  else head[1] = 0x80 | (total - 2)
  return [
    { at, length: head.length, bytes: head },
    { at: at + head.length, length: total - head.length },
  ]
}

const MAX_SCENE_BYTES = 33_554_432
const GLB_JSON = 0x4e4f534a

/** null: it cannot be written again without them. */
export async function blankGlb(reader: PartReader): Promise<Patch[] | null> {
  const head = await reader.read(12, 8)
  if (head.length < 8 || head.readUInt32LE(4) !== GLB_JSON) return null
  const length = head.readUInt32LE(0)
  if (length > MAX_SCENE_BYTES || 20 + length > reader.size) return null
  const text = (await reader.read(20, length)).toString('utf8')
  try {
    const bytes = Buffer.alloc(length, ' ')
    const scene = Buffer.from(
      JSON.stringify(JSON.parse(text, (name, value) => (name === 'extras' ? undefined : value))),
    )
    if (scene.length > length) return null
    bytes.set(scene)
    return [{ at: 20, length, bytes }]
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
