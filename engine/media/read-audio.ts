/** The sound of a media file: WAV by ourselves, everything else through ffmpeg, at the rate and with the channels it has. */
import { NodeError } from '../node/node-error.ts'
import { inBlocks } from '../tensor/map-pixels.ts'
import type { PixelWork } from '../tensor/tensor.ts'
import type { Audio } from './audio.ts'
import { type MediaFile, openArgs, runFfmpeg, unreadable } from './ffmpeg.ts'
import { GrowingFloats } from './growing-floats.ts'
import { type AudioStream, probeMedia } from './probe.ts'
import { readWav } from './wav.ts'

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

export interface StreamRequest {
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
