/** The sound of a media file: WAV by ourselves, everything else through ffmpeg, at the rate and with the channels it has. */

import { NodeError } from '../node/node-error.ts'
import { inBlocks } from '../tensor/map-pixels.ts'
import type { Allocate, PixelWork, Tensor } from '../tensor/tensor.ts'
import type { Audio } from './audio.ts'
import { type MediaFile, openArgs, runFfmpeg, unreadable } from './ffmpeg.ts'
import { type AudioStream, probeMedia } from './probe.ts'
import { readWav } from './wav.ts'

const PIECE_FLOATS = 1_048_576

/**
 * Floats whose number is known only at the end, kept in pieces of the engine's own memory: a small file that unpacks to a
 * flood meets the memory limit, not the end of the process.
 */
class GrowingFloats {
  readonly #allocate: Allocate
  readonly #pieces: Tensor[] = []
  #count = 0
  // A chunk may end inside a float.
  #rest: Buffer = Buffer.alloc(0)

  constructor(allocate: Allocate) {
    this.#allocate = allocate
  }

  get count(): number {
    return this.#count
  }

  /** Little-endian floats, cut anywhere. */
  append(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const whole = bytes.length - (bytes.length % 4)
    const view = new DataView(bytes.buffer, bytes.byteOffset, whole)
    for (let at = 0; at < whole; ) {
      const within = this.#count % PIECE_FLOATS
      if (within === 0) this.#pieces.push(this.#allocate([PIECE_FLOATS]))
      const { data } = this.#pieces[this.#pieces.length - 1]
      const room = Math.min(PIECE_FLOATS - within, (whole - at) / 4)
      for (let i = 0; i < room; i++, at += 4) data[within + i] = view.getFloat32(at, true)
      this.#count += room
    }
    this.#rest = Buffer.from(bytes.subarray(whole))
  }

  at(index: number): number {
    return this.#pieces[Math.floor(index / PIECE_FLOATS)].data[index % PIECE_FLOATS]
  }
}

/** A part of a file, in seconds; a duration of 0 means to the end. */
export interface TimeWindow {
  readonly start: number
  readonly duration: number
}

export const WHOLE: TimeWindow = { start: 0, duration: 0 }

export function windowArgs({ start, duration }: TimeWindow): string[] {
  const args: string[] = []
  if (start > 0) args.push('-ss', start.toFixed(6))
  if (duration > 0) args.push('-t', duration.toFixed(6))
  return args
}

interface StreamRequest {
  readonly file: MediaFile
  readonly stream: AudioStream
  readonly window: TimeWindow
}

/** Interleaved samples as ffmpeg gives them, as a waveform of one element. */
function toAudio(samples: GrowingFloats, { channels, sampleRate }: AudioStream, work: PixelWork): Audio {
  const length = Math.floor(samples.count / channels)
  const waveform = work.allocate([1, channels, length])
  inBlocks(length, work.checkpoint, (from, to) => {
    for (let channel = 0; channel < channels; channel++) {
      for (let i = from; i < to; i++) waveform.data[channel * length + i] = samples.at(i * channels + channel)
    }
  })
  return { waveform, sampleRate }
}

/** null when the stream cannot be decoded, or holds nothing. */
export async function readAudioStream(request: StreamRequest, work: PixelWork): Promise<Audio | null> {
  const { file, stream, window } = request
  const samples = new GrowingFloats(work.allocate)
  const { isDone } = await runFfmpeg({
    // The layout is pinned: otherwise a change in the middle of a stream would change the meaning of what follows.
    args: [
      ...windowArgs(window),
      ...openArgs(file),
      ...['-map', `0:${stream.index}`, '-ac', String(stream.channels), '-ar', String(stream.sampleRate)],
      ...['-c:a', 'pcm_f32le', '-f', 'f32le', 'pipe:1'],
    ],
    purpose: `reading '${file.name}'`,
    checkpoint: work.checkpoint,
    onOutput: (bytes) => samples.append(bytes),
  })
  return isDone && samples.count >= stream.channels ? toAudio(samples, stream, work) : null
}

/** The first sound of the file. Throws NodeError when there is none. */
export async function readAudio(file: MediaFile, work: PixelWork): Promise<Audio> {
  const wav = await readWav(file.path, work)
  if (wav !== null) {
    if (wav.waveform.shape[2] === 0) throw new NodeError('ValueError', 'No audio frames decoded.')
    return wav
  }
  const { audio, video } = await probeMedia(file, work)
  if (audio.length === 0) {
    if (video === null) throw unreadable(file)
    throw new NodeError('ValueError', 'No audio stream found in the file.')
  }
  const read = await readAudioStream({ file, stream: audio[0], window: WHOLE }, work)
  if (read === null) throw new NodeError('ValueError', 'No audio frames decoded.')
  return read
}
