/** Sound as MP3 or Opus files, encoded by ffmpeg. One element of a batch is one file. */

import type { FileTags } from '../files/file-tags.ts'
import { resample } from '../tensor/sound/resample.ts'
import type { PixelWork } from '../tensor/tensor.ts'
import { type Audio, interleaved } from './audio.ts'
import { encodingFailed, runFfmpeg } from './ffmpeg.ts'
import { MAX_MADE_BYTES, openWorkFolder, readMade, writeMetadataFile } from './work-folder.ts'

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
