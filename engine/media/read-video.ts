/** Frames and sound of a video file, or of a part of one, as tensors. */
import { NodeError } from '../node/node-error.ts'
import { BYTE_TO_FLOAT } from '../tensor/bytes.ts'
import { type DecodeWork, type PixelWork, Tensor } from '../tensor/tensor.ts'
import type { Audio } from './audio.ts'
import { readAudioStream, type TimeWindow, windowArgs } from './audio-files.ts'
import { type MediaFile, openArgs, runFfmpeg, unreadable } from './ffmpeg.ts'
import { type Probe, probeFrames, probeMedia, type VideoStream } from './probe.ts'
import type { BitDepth, FileVideo } from './video.ts'

export interface ReadWork extends DecodeWork {
  readonly maxImagePixels: number
}

export type ColorSpace = 'sRGB' | 'HDR' | 'HDR PQ'

interface VideoFacts {
  readonly stream: VideoStream
  readonly probe: Probe
  /** Seconds of the part that is meant. */
  readonly duration: number
  /** Frames of that part, as far as the container tells. */
  readonly frameCount: number
  readonly colorSpace: ColorSpace
}

const COLOR_SPACES: Readonly<Record<string, ColorSpace>> = { 'arib-std-b67': 'HDR', smpte2084: 'HDR PQ' }

function videoOf({ video, audio }: Probe, file: MediaFile): VideoStream {
  if (video !== null) return video
  if (audio.length === 0) throw unreadable(file)
  throw new NodeError('ValueError', `No video stream found in file '${file.name}'`)
}

function secondsOf(total: number, { start, duration }: TimeWindow): number {
  const rest = Math.max(0, total - start)
  return duration > 0 ? Math.min(duration, rest) : rest
}

/** What the file holds without its frames; they are not counted. */
export async function readVideoFacts(video: FileVideo, work: ReadWork, probing = probeMedia): Promise<VideoFacts> {
  const { file, window } = video
  const probe = await probing(file, work)
  const stream = videoOf(probe, file)
  const duration = secondsOf(probe.duration, window)
  const isWhole = window.start === 0 && window.duration === 0
  const left = Math.max(0, stream.packets - Math.round(window.start * stream.fps))
  const frameCount = isWhole ? stream.packets : Math.min(left, Math.round(duration * stream.fps))
  return { stream, probe, duration, frameCount, colorSpace: COLOR_SPACES[stream.transfer] ?? 'sRGB' }
}

/** The same with a true number of frames, which takes reading the file once. */
export function countFrames(video: FileVideo, work: ReadWork): Promise<VideoFacts> {
  return readVideoFacts(video, work, probeFrames)
}

/**
 * Gathers frames from a stream of bytes. Frames that were not asked for are skipped; when more come than were expected,
 * the memory grows.
 */
class FrameStore {
  readonly #work: ReadWork
  readonly #shape: readonly [height: number, width: number]
  readonly #bitDepth: BitDepth
  readonly #isWanted: (index: number) => boolean
  readonly #frame: Uint8Array
  #filled = 0
  #index = 0
  #kept = 0
  #room: Tensor

  constructor(
    { width, height, bitDepth }: VideoStream,
    work: ReadWork,
    wanted: { readonly count: number; readonly isWanted: (index: number) => boolean },
  ) {
    this.#work = work
    this.#shape = [height, width]
    this.#bitDepth = bitDepth
    this.#isWanted = wanted.isWanted
    this.#frame = new Uint8Array(width * height * 3 * (bitDepth === 8 ? 1 : 2))
    this.#room = work.allocate([Math.max(1, wanted.count), height, width, 3])
  }

  append(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + this.#frame.length - this.#filled)
      this.#frame.set(part, this.#filled)
      this.#filled += part.length
      at += part.length
      if (this.#filled < this.#frame.length) return
      this.#filled = 0
      if (this.#isWanted(this.#index++)) this.#keep()
    }
  }

  /** The frames so far; shares memory with the store. */
  frames(): Tensor {
    const [height, width] = this.#shape
    const { data } = this.#room
    return new Tensor([this.#kept, height, width, 3], data.subarray(0, this.#kept * height * width * 3))
  }

  #keep(): void {
    this.#work.checkpoint()
    const [height, width] = this.#shape
    const size = height * width * 3
    const room = this.#room.shape[0]
    if (this.#kept === room) {
      const larger = this.#work.allocate([Math.ceil(room * 1.5), height, width, 3])
      larger.data.set(this.#room.data)
      this.#room = larger
    }
    this.#convert(this.#room.data.subarray(this.#kept * size, (this.#kept + 1) * size))
    this.#kept += 1
  }

  #convert(target: Float32Array): void {
    const frame = this.#frame
    if (this.#bitDepth === 8) {
      for (let i = 0; i < target.length; i++) target[i] = BYTE_TO_FLOAT[frame[i]]
      return
    }
    for (let i = 0; i < target.length; i++) target[i] = (frame[2 * i] | (frame[2 * i + 1] << 8)) / 65_535
  }
}

// A window is cut a little early: times in a container are rounded, and the frame at its start must not fall out.
const EARLY_SHARE_OF_FRAME = 0.25

function frameWindow({ start, duration }: TimeWindow, fps: number): TimeWindow {
  return { start: Math.max(0, start - EARLY_SHARE_OF_FRAME / fps), duration }
}

// Frames as they are, without filling gaps. Older programs have another word for it.
const PASS_THROUGH = [
  ['-fps_mode', 'passthrough'],
  ['-vsync', 'passthrough'],
] as const
const UNKNOWN_OPTION = /Unrecognized option 'fps_mode/

interface FramesRequest {
  readonly video: FileVideo
  readonly facts: VideoFacts
  /** Positions of the wanted frames within the part; null for all. */
  readonly positions: ReadonlySet<number> | null
}

// The frame here, and those that ffmpeg keeps: references of the codec, and one per thread.
const DECODER_THREADS = 4
const HELD_FRAMES = 1 + DECODER_THREADS + 6
const FLOAT_BYTES = 4

/** What decoding takes beside the frames that are kept. */
function decoderBytes({ width, height, bitDepth }: VideoStream): number {
  return width * height * 3 * (bitDepth === 8 ? 1 : 2) * HELD_FRAMES
}

async function decode(request: FramesRequest, store: FrameStore, work: ReadWork): Promise<boolean> {
  const { video, facts } = request
  const { stream } = facts
  for (const mode of PASS_THROUGH) {
    const { isDone, complaint } = await runFfmpeg({
      args: [
        ...windowArgs(frameWindow(video.window, stream.fps)),
        ...['-max_pixels', String(work.maxImagePixels), '-threads', String(DECODER_THREADS)],
        ...openArgs(video.file),
        ...['-map', `0:${stream.index}`, ...mode, '-pix_fmt', stream.bitDepth === 8 ? 'rgb24' : 'rgb48le'],
        ...['-c:v', 'rawvideo', '-f', 'rawvideo', 'pipe:1'],
      ],
      purpose: `reading '${video.file.name}'`,
      checkpoint: work.checkpoint,
      onOutput: (bytes) => store.append(bytes),
    })
    if (isDone || !UNKNOWN_OPTION.test(complaint)) return isDone
  }
  return false
}

/** [frames, height, width, 3]. Throws NodeError when there is not one of them. */
export async function readFrames(request: FramesRequest, work: ReadWork): Promise<Tensor> {
  const { video, facts, positions } = request
  const { width, height } = facts.stream
  if (width * height === 0) throw unreadable(video.file)
  if (width * height > work.maxImagePixels) {
    throw new NodeError(
      'ValueError',
      `'${video.file.name}': frames of ${width} x ${height} exceed the limit of ${work.maxImagePixels} pixels`,
    )
  }
  const wanted =
    positions === null
      ? { count: facts.frameCount, isWanted: () => true }
      : { count: positions.size, isWanted: (index: number) => positions.has(index) }
  const giveBack = await work.reserve(decoderBytes(facts.stream), wanted.count * width * height * 3 * FLOAT_BYTES)
  const store = new FrameStore(facts.stream, work, wanted)
  const isDone = await decode(request, store, work).finally(giveBack)
  const frames = store.frames()
  // A file with a damaged end still shows what came before, as players do.
  if (frames.shape[0] === 0) {
    if (!isDone) throw unreadable(video.file)
    throw new NodeError('ValueError', `'${video.file.name}' has no frames in the part that was asked for`)
  }
  return frames
}

/** The last sound that can be decoded; null when there is none. */
export async function readSound({ file, window }: FileVideo, { probe }: VideoFacts, work: PixelWork) {
  for (const stream of probe.audio.toReversed()) {
    const read: Audio | null = await readAudioStream({ file, stream, window }, work)
    if (read !== null) return read
  }
  return null
}
