/**
 * VIDEO as nodes pass it on: a handle that is cheap to make and to move. Either frames in memory with their sound, or a
 * part of a file that is opened only when a node needs its content.
 * The path of a file travels inside a tensor. So it cannot be written into a graph as a constant, which would open any file
 * of this machine to the caller, and no text that shows a value shows it.
 */
import { type Allocate, Tensor } from '../tensor/tensor.ts'
import type { Value, ValueObject } from '../values/value.ts'
import { type Audio, readAudioValue, toAudioValue } from './audio.ts'
import type { TimeWindow } from './audio-files.ts'
import type { MediaFile } from './ffmpeg.ts'

export type BitDepth = 8 | 10

export interface FrameVideo {
  readonly kind: 'frames'
  readonly images: Tensor
  readonly audio: Audio | null
  readonly fps: number
  readonly bitDepth: BitDepth
}

export interface FileVideo {
  readonly kind: 'file'
  readonly file: MediaFile
  readonly window: TimeWindow
}

export type Video = FrameVideo | FileVideo

function sealText(text: string, allocate: Allocate): Tensor {
  const bytes = Buffer.from(text, 'utf8')
  const sealed = allocate([bytes.length])
  sealed.data.set(bytes)
  return sealed
}

function unsealText({ data }: Tensor): string {
  return Buffer.from(Uint8Array.from(data)).toString('utf8')
}

export function toVideoValue(video: Video, allocate: Allocate): ValueObject {
  if (video.kind === 'file') {
    const { file, window } = video
    return { source: sealText(file.path, allocate), name: file.name, start: window.start, duration: window.duration }
  }
  const { images, audio, fps, bitDepth } = video
  return { images, audio: audio === null ? null : toAudioValue(audio), fps, bit_depth: bitDepth }
}

const isTime = (value: Value): value is number => typeof value === 'number' && value >= 0

function readFrames({ images, audio, fps, bit_depth: depth }: ValueObject): FrameVideo | null {
  if (!(images instanceof Tensor) || images.shape.length !== 4) return null
  if (typeof fps !== 'number' || !(fps > 0) || (depth !== 8 && depth !== 10)) return null
  const sound = audio === null ? null : readAudioValue(audio)
  if (audio !== null && sound === null) return null
  return { kind: 'frames', images, audio: sound, fps, bitDepth: depth }
}

/** null when the value is no video. */
export function readVideoValue(value: Value): Video | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const { source, name, start, duration, ...frames } = value as ValueObject
  if (!(source instanceof Tensor)) return readFrames(frames)
  if (source.shape.length !== 1 || typeof name !== 'string' || !isTime(start) || !isTime(duration)) return null
  return { kind: 'file', file: { path: unsealText(source), name }, window: { start, duration } }
}
