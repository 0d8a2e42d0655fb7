/** The sound of a media file: WAV by ourselves, everything else through ffmpeg, at the rate and with the channels it has. */

import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'
import { inBlocks } from '../tensor/channels.ts'
import { resample } from '../tensor/sound.ts'
import type { Allocate, PixelWork, Tensor } from '../tensor/tensor.ts'
import { type Audio, interleaved, readWav } from './audio.ts'
import {
  encodingFailed,
  MAX_MADE_BYTES,
  type MediaFile,
  openArgs,
  openWorkFolder,
  readMade,
  runFfmpeg,
  unreadable,
  writeMetadataFile,
} from './ffmpeg.ts'
import { type AudioStream, probeMedia } from './probe.ts'

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

// Sound as MP3 or Opus files, encoded by ffmpeg. One element of a batch is one file.

export const MP3_QUALITIES = ['V0', '128k', '320k'] as const
export const OPUS_QUALITIES = ['64k', '96k', '128k', '192k', '320k'] as const
type Mp3Quality = (typeof MP3_QUALITIES)[number]
type OpusQuality = (typeof OPUS_QUALITIES)[number]

export type LossyFormat =
  | { readonly format: 'mp3'; readonly quality: Mp3Quality }
  | { readonly format: 'opus'; readonly quality: OpusQuality }

interface EncodeAudioOptions {
  readonly batch: number
  readonly tags: FileTags
}

function codecArgs({ format, quality }: LossyFormat): string[] {
  const codec = ['-c:a', format === 'mp3' ? 'libmp3lame' : 'libopus']
  // V0 is the best of the variable rates.
  return [...codec, ...(quality === 'V0' ? ['-q:a', '0'] : ['-b:a', quality]), '-f', format]
}

const OPUS_RATES = [8000, 12_000, 16_000, 24_000, 48_000]

/** Opus knows five rates: the next higher one is taken, and nothing above 48 kHz. */
function toOpusRate({ waveform, sampleRate }: Audio, work: PixelWork): Audio {
  const rate = OPUS_RATES.find((known) => known >= sampleRate) ?? 48_000
  return { waveform: resample(waveform, { from: sampleRate, to: rate }, work), sampleRate: rate }
}

export async function encodeLossy(
  audio: Audio,
  target: LossyFormat,
  { batch, tags, ...work }: EncodeAudioOptions & PixelWork,
): Promise<Uint8Array<ArrayBuffer>> {
  const { waveform, sampleRate } = target.format === 'opus' ? toOpusRate(audio, work) : audio
  const [, channels, length] = waveform.shape
  const purpose = `writing ${target.format} audio`
  await using folder = await openWorkFolder()
  const made = folder.file(`made.${target.format}`)
  const metadata = await writeMetadataFile(folder.file('metadata'), tags)
  const end = await runFfmpeg({
    args: [
      ...['-f', 'f32le', '-ar', String(sampleRate), '-ac', String(channels), '-i', 'pipe:0', ...metadata],
      ...['-map', '0:a', '-map_metadata', '1', ...codecArgs(target), '-fs', String(MAX_MADE_BYTES), `file:${made}`],
    ],
    purpose,
    input: interleaved(waveform, { batch, length, checkpoint: work.checkpoint }),
    checkpoint: work.checkpoint,
  })
  if (!end.isDone) throw encodingFailed(purpose, end)
  return await readMade(made, purpose)
}
