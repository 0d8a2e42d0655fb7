/**
 * Video files, encoded or copied by ffmpeg. Frames from memory are piped in as they are made; a file is converted to another
 * without its frames ever coming here. Metadata goes into the container.
 */
import { writeFile } from 'node:fs/promises'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'
import { toBytes } from '../tensor/bytes.ts'
import { type Tensor, viewOf } from '../tensor/tensor.ts'
import { type Audio, interleaved } from './audio.ts'
import { windowArgs } from './audio-files.ts'
import {
  encodingFailed,
  MAX_MADE_BYTES,
  openArgs,
  openWorkFolder,
  readMade,
  runFfmpeg,
  type WorkFolder,
  writeMetadataFile,
} from './ffmpeg.ts'
import type { ColorSpace } from './read-video.ts'
import type { BitDepth, FileVideo, FrameVideo } from './video.ts'

export type Container = 'mp4' | 'mkv' | 'webm'

/** An encoder with its settings, in ffmpeg's words. */
export interface VideoEncoder {
  readonly name: 'libx264' | 'libsvtav1' | 'libvpx-vp9'
  readonly args: readonly string[]
  readonly pixelFormat: string
  /** null leaves colours untouched and unmarked. */
  readonly colorSpace: ColorSpace | null
}

interface WriteWork {
  checkpoint(): void
  progress(value: number, max: number): void
}

interface WriteOptions {
  readonly container: Container
  readonly encoder: VideoEncoder
  readonly tags: FileTags
}

const CONTAINER_ARGS: Readonly<Record<Container, readonly string[]>> = {
  // Without the flag, mp4 drops every key it does not know.
  mp4: ['-movflags', 'use_metadata_tags+faststart', '-f', 'mp4'],
  mkv: ['-f', 'matroska'],
  webm: ['-f', 'webm'],
}

const SOUND_ARGS: Readonly<Record<Container, readonly string[]>> = {
  mp4: ['-c:a', 'aac'],
  mkv: ['-c:a', 'aac'],
  webm: ['-c:a', 'libopus', '-ar', '48000'],
}

const COLOR_TAGS: Readonly<Record<ColorSpace, { matrix: string; transfer: string; primaries: string }>> = {
  sRGB: { matrix: 'bt709', transfer: 'bt709', primaries: 'bt709' },
  HDR: { matrix: 'bt2020nc', transfer: 'arib-std-b67', primaries: 'bt2020' },
  'HDR PQ': { matrix: 'bt2020nc', transfer: 'smpte2084', primaries: 'bt2020' },
}

// The filter that converts has names of its own for the matrices.
const FILTER_MATRIX: Readonly<Record<string, string>> = { bt709: 'bt709', bt2020nc: 'bt2020' }

function encoderArgs({ name, args, pixelFormat, colorSpace }: VideoEncoder): string[] {
  const codec = ['-c:v', name, ...args]
  if (colorSpace === null) return [...codec, '-pix_fmt', pixelFormat]
  const { matrix, transfer, primaries } = COLOR_TAGS[colorSpace]
  const filter = `scale=out_color_matrix=${FILTER_MATRIX[matrix]}:out_range=tv,format=${pixelFormat}`
  const tags = ['-colorspace', matrix, '-color_trc', transfer, '-color_primaries', primaries, '-color_range', 'tv']
  return [...codec, '-vf', filter, ...tags]
}

interface RawFormat {
  readonly name: 'rgb24' | 'rgb48le' | 'rgba'
  readonly channels: 3 | 4
  readonly bitDepth: BitDepth
}

const RAW_FORMATS = {
  plain: { name: 'rgb24', channels: 3, bitDepth: 8 },
  deep: { name: 'rgb48le', channels: 3, bitDepth: 10 },
  alpha: { name: 'rgba', channels: 4, bitDepth: 8 },
} as const satisfies Readonly<Record<string, RawFormat>>

/** Channels beside red, green and blue are left out unless the format has room for them; grey becomes all three. */
function pickChannels(pixels: Float32Array, given: number, wanted: number): Float32Array {
  if (given === wanted) return pixels
  const count = pixels.length / given
  const picked = new Float32Array(count * wanted)
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < wanted; c++) picked[i * wanted + c] = pixels[i * given + Math.min(c, given - 1)]
  }
  return picked
}

function toWords(pixels: Float32Array): Uint8Array {
  const words = new Uint16Array(pixels.length)
  for (let i = 0; i < pixels.length; i++) {
    const scaled = Math.fround(65_535 * pixels[i])
    words[i] = scaled >= 65_535 ? 65_535 : scaled > 0 ? scaled : 0
  }
  return new Uint8Array(words.buffer)
}

function* rawFrames(images: Tensor, format: RawFormat, work: WriteWork): Generator<Uint8Array> {
  const { batch, height, width, channels, data } = viewOf(images)
  const size = height * width * channels
  for (let index = 0; index < batch; index++) {
    work.progress(index, batch)
    const pixels = pickChannels(data.subarray(index * size, (index + 1) * size), channels, format.channels)
    if (format.bitDepth === 10) {
      yield toWords(pixels)
    } else {
      const bytes = new Uint8Array(pixels.length)
      toBytes(pixels, bytes, { from: 0, to: 0, count: pixels.length })
      yield bytes
    }
  }
}

/** As upstream: three digits after the point. */
function rateOf(fps: number): { readonly text: string; readonly value: number } {
  const thousands = Math.max(1, Math.round(fps * 1000))
  return { text: `${thousands}/1000`, value: thousands / 1000 }
}

/** The sound as a file that ffmpeg reads beside the frames, cut to their length. */
async function writeSound(audio: Audio, seconds: number, { folder, checkpoint }: WriteWork & { folder: WorkFolder }) {
  const { waveform, sampleRate } = audio
  const [, channels, whole] = waveform.shape
  const length = Math.min(whole, Math.ceil(sampleRate * seconds))
  const path = folder.file('sound')
  await writeFile(path, interleaved(waveform, { batch: 0, length, checkpoint }))
  return ['-f', 'f32le', '-ar', String(sampleRate), '-ac', String(channels), '-i', `file:${path}`]
}

const PURPOSE = 'writing a video'

async function make(
  folder: WorkFolder,
  args: readonly string[],
  { container, work, input }: { container: Container; work: WriteWork; input?: Iterable<Uint8Array> },
): Promise<Uint8Array<ArrayBuffer>> {
  const made = folder.file(`made.${container}`)
  const end = await runFfmpeg({
    args: [...args, ...CONTAINER_ARGS[container], '-fs', String(MAX_MADE_BYTES), `file:${made}`],
    purpose: PURPOSE,
    checkpoint: work.checkpoint,
    ...(input && { input }),
  })
  if (!end.isDone) throw encodingFailed(PURPOSE, end)
  return await readMade(made, PURPOSE)
}

function rawFormatOf({ pixelFormat }: VideoEncoder, bitDepth: BitDepth): RawFormat {
  if (pixelFormat === 'yuva420p') return RAW_FORMATS.alpha
  return bitDepth === 10 ? RAW_FORMATS.deep : RAW_FORMATS.plain
}

function checkFrames({ batch, width, height }: ReturnType<typeof viewOf>, { name }: VideoEncoder): void {
  if (batch === 0 || width === 0 || height === 0)
    throw new NodeError('ValueError', 'a video without frames cannot be saved')
  if (name === 'libx264' && (width % 2 !== 0 || height % 2 !== 0)) {
    throw new NodeError('ValueError', `H.264 needs an even width and height, not ${width} x ${height}`)
  }
}

/** Frames from memory. */
export async function encodeFrames(
  video: FrameVideo,
  { container, encoder, tags }: WriteOptions,
  work: WriteWork,
): Promise<Uint8Array<ArrayBuffer>> {
  const { images, audio, fps, bitDepth } = video
  const view = viewOf(images)
  checkFrames(view, encoder)
  const raw = rawFormatOf(encoder, bitDepth)
  const rate = rateOf(fps)
  await using folder = await openWorkFolder()
  const size = `${view.width}x${view.height}`
  const frames = ['-f', 'rawvideo', '-pix_fmt', raw.name, '-s', size, '-framerate', rate.text, '-i', 'pipe:0']
  const metadata = await writeMetadataFile(folder.file('metadata'), tags)
  const sound = audio === null ? [] : await writeSound(audio, view.batch / rate.value, { ...work, folder })
  const soundArgs = audio === null ? [] : ['-map', '2:a', ...SOUND_ARGS[container]]
  return await make(
    folder,
    [
      ...[...frames, ...metadata, ...sound, '-map', '0:v', '-map_metadata', '1'],
      ...[...encoderArgs(encoder), ...soundArgs],
    ],
    { container, work, input: rawFrames(images, raw, work) },
  )
}

// Ours first: what is set is not overwritten, so keys of the source stay unless we have the same.
const BOTH_METADATA = ['-map_metadata', '1', '-map_metadata', '0']

/** A part of a file, encoded anew. */
export async function encodeFile(
  { file, window }: FileVideo,
  { container, encoder, tags }: WriteOptions,
  work: WriteWork,
): Promise<Uint8Array<ArrayBuffer>> {
  await using folder = await openWorkFolder()
  const metadata = await writeMetadataFile(folder.file('metadata'), tags)
  const streams = ['-map', '0:V:0', '-map', '0:a?', ...BOTH_METADATA]
  const args = [...windowArgs(window), ...openArgs(file), ...metadata, ...streams]
  return await make(folder, [...args, ...encoderArgs(encoder), ...SOUND_ARGS[container]], { container, work })
}

/** The file's own streams in a container of ours. */
export async function copyFile(
  { file }: FileVideo,
  { container, tags }: Omit<WriteOptions, 'encoder'>,
  work: WriteWork,
): Promise<Uint8Array<ArrayBuffer>> {
  await using folder = await openWorkFolder()
  const metadata = await writeMetadataFile(folder.file('metadata'), tags)
  const streams = ['-map', '0:V:0', '-map', '0:a?', '-c', 'copy', ...BOTH_METADATA]
  return await make(folder, [...openArgs(file), ...metadata, ...streams], { container, work })
}
