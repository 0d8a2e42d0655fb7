/**
 * What an MP4 or MOV says about its picture: size, length, frames. Only the tables of the movie are read, wherever in the file they lie,
 * and never the pictures. Other containers, and files that contradict themselves, give null.
 */
import { BoundedReader, type Box, boxes, findBox, HEAD_BYTES, memorySource, TooMuchMetadataError } from './mp4-boxes.ts'

interface VideoFacts {
  readonly width: number
  readonly height: number
  /** null: the file does not say. */
  readonly durationSeconds: number | null
  readonly frameCount: number | null
  readonly fps: number | null
}

/** Fewer bytes at the end of the file. */
type ReadRange = (start: number, length: number) => Promise<Buffer>

// Files have a handful; the movie is the first or the last of them.
const MAX_TOP_BOXES = 64
const LARGE_HEAD_BYTES = 16
// An hour at 60 frames a second takes less than 4 MiB.
const MAX_MOVIE_BYTES = 33_554_432

export async function readVideoFacts(read: ReadRange, sizeBytes: number): Promise<VideoFacts | null> {
  const bytes = await readMovie(read, sizeBytes)
  if (bytes === null) return null
  const reader = new BoundedReader(memorySource(bytes))
  try {
    for (const track of boxes(reader, 0, reader.size)) {
      const facts = track.type === 'trak' ? readTrack(reader, track) : null
      if (facts !== null) return facts
    }
  } catch (error) {
    // A table that is shorter than it says.
    if (!(error instanceof RangeError || error instanceof TooMuchMetadataError)) throw error
  }
  return null
}

/** The content of the box that holds all tables. */
async function readMovie(read: ReadRange, sizeBytes: number): Promise<Buffer | null> {
  for (let at = 0, count = 0; at + HEAD_BYTES <= sizeBytes && count < MAX_TOP_BOXES; count++) {
    const head = await read(at, LARGE_HEAD_BYTES)
    if (head.length < HEAD_BYTES) return null
    const short = head.readUInt32BE(0)
    if (short === 1 && head.length < LARGE_HEAD_BYTES) return null
    const headBytes = short === 1 ? LARGE_HEAD_BYTES : HEAD_BYTES
    const size = short === 1 ? Number(head.readBigUInt64BE(8)) : short === 0 ? sizeBytes - at : short
    if (size < headBytes) return null
    if (head.toString('latin1', 4, 8) === 'moov')
      return size > MAX_MOVIE_BYTES ? null : read(at + headBytes, size - headBytes)
    at += size
  }
  return null
}

function readTrack(reader: BoundedReader, track: Box): VideoFacts | null {
  const media = findBox(reader, track, 'mdia')
  const handler = media && findBox(reader, media, 'hdlr')
  if (media === undefined || handler === undefined) return null
  if (reader.read(handler.start + 8, 4).toString('latin1') !== 'vide') return null
  const size = readSize(reader, track)
  if (size === null) return null
  const durationSeconds = readDuration(reader, media)
  const frameCount = countFrames(reader, media)
  const fps = durationSeconds === null || frameCount === null || frameCount === 0 ? null : frameCount / durationSeconds
  return { ...size, durationSeconds, frameCount, fps }
}

/** The last two numbers of the track's head, each with sixteen bits behind the point. */
function readSize(reader: BoundedReader, track: Box): { width: number; height: number } | null {
  const head = findBox(reader, track, 'tkhd')
  if (head === undefined) return null
  const end = reader.read(head.end - 8, 8)
  const [width, height] = [end.readUInt32BE(0) >>> 16, end.readUInt32BE(4) >>> 16]
  return width > 0 && height > 0 ? { width, height } : null
}

function readDuration(reader: BoundedReader, media: Box): number | null {
  const head = findBox(reader, media, 'mdhd')
  if (head === undefined) return null
  const isLong = reader.read(head.start, 1)[0] === 1
  const [scaleAt, lengthAt] = isLong ? [20, 24] : [12, 16]
  const scale = reader.read(head.start + scaleAt, 4).readUInt32BE(0)
  const bytes = reader.read(head.start + lengthAt, isLong ? 8 : 4)
  const length = isLong ? Number(bytes.readBigUInt64BE(0)) : bytes.readUInt32BE(0)
  return scale === 0 || length === 0 ? null : length / scale
}

/** How many samples the table of their times has. */
function countFrames(reader: BoundedReader, media: Box): number | null {
  const information = findBox(reader, media, 'minf')
  const table = information && findBox(reader, information, 'stbl')
  const times = table && findBox(reader, table, 'stts')
  if (times === undefined) return null
  const bytes = reader.read(times.start + 8, times.end - times.start - 8)
  const entries = Math.min(reader.read(times.start + 4, 4).readUInt32BE(0), Math.floor(bytes.length / 8))
  let frames = 0
  for (let at = 0; at < entries; at++) frames += bytes.readUInt32BE(8 * at)
  return frames
}
