/** The choices that SaveVideo offers, and what they mean to the encoder. */

import type { ColorSpace } from '../../media/read-video.ts'
import type { BitDepth } from '../../media/video.ts'
import type { Container, VideoEncoder } from '../../media/write-video.ts'
import { dynamicCombo } from '../../node/dynamic-kinds.ts'
import { combo, float } from '../../node/input-kinds.ts'

function encoding(crf: { readonly default: number; readonly max: number }) {
  return dynamicCombo(
    {
      auto: {},
      're-encode': {
        required: {
          crf: float({ ...crf, min: 0, step: 1 }),
          color_space: combo(['auto', 'sRGB', 'HDR', 'HDR PQ'], { display_name: 'color space', default: 'auto' }),
        },
      },
    },
    { display_name: 'encoding mode' },
  )
}

const h264 = { optional: { encoding: encoding({ default: 23, max: 51 }) } }
const av1 = { optional: { encoding: encoding({ default: 30, max: 63 }) } }
const anyCodec = { auto: {}, h264, av1 } as const

/** Beside the choice of a format: clients of older versions send their codec here. */
export const codecChoice = dynamicCombo(anyCodec, { hidden: true })

export const formatChoice = dynamicCombo({
  auto: { required: { codec: dynamicCombo(anyCodec) } },
  mp4: { required: { codec: dynamicCombo(anyCodec) } },
  mkv: { required: { codec: dynamicCombo(anyCodec) } },
  webm: { required: { codec: dynamicCombo({ auto: {}, av1 }) } },
})

type Codec = 'h264' | 'av1'

export interface SaveChoice {
  readonly container: Container
  readonly codec: Codec | 'auto'
  /** null: as it comes. */
  readonly encoding: { readonly crf: number; readonly colorSpace: ColorSpace | 'auto' } | null
}

type Format = ReturnType<typeof formatChoice.readGroup>
type CodecGroup = ReturnType<typeof codecChoice.readGroup>

export function readChoice(format: Format, beside: CodecGroup | undefined): SaveChoice {
  const container = format.key === 'auto' ? 'mp4' : format.key
  const inside: CodecGroup = format.inputs.codec
  const codec = inside.key === 'auto' && beside !== undefined ? beside : inside
  if (codec.key === 'auto') return { container, codec: 'auto', encoding: null }
  const chosen = codec.inputs.encoding
  const wanted = chosen?.key === 're-encode' ? chosen.inputs : null
  return {
    container,
    codec: codec.key,
    encoding: wanted === null ? null : { crf: wanted.crf, colorSpace: wanted.color_space },
  }
}

const DEFAULT_AV1_CRF = 30

/** How frames are encoded. `native` is the colour space of what comes in. */
export function toEncoder(
  { container, codec, encoding: wanted }: SaveChoice,
  { bitDepth, native }: { readonly bitDepth: BitDepth; readonly native: ColorSpace | null },
): VideoEncoder {
  const pixelFormat = bitDepth === 10 ? 'yuv420p10le' : 'yuv420p'
  const colorSpace = wanted === null || wanted.colorSpace === 'auto' ? native : wanted.colorSpace
  const isAv1 = codec === 'av1' || (codec === 'auto' && container === 'webm')
  if (isAv1) {
    return { name: 'libsvtav1', args: ['-crf', String(wanted?.crf ?? DEFAULT_AV1_CRF)], pixelFormat, colorSpace }
  }
  return { name: 'libx264', args: wanted === null ? [] : ['-crf', String(wanted.crf)], pixelFormat, colorSpace }
}

// What a container may hold; a Matroska file holds anything.
const HOLDS: Readonly<Record<Container, { video: ReadonlySet<string>; audio: ReadonlySet<string> } | null>> = {
  mkv: null,
  mp4: {
    video: new Set(['h264', 'hevc', 'av1', 'vp9', 'mpeg4']),
    audio: new Set(['aac', 'mp3', 'ac3', 'eac3', 'opus', 'flac', 'alac']),
  },
  webm: { video: new Set(['vp8', 'vp9', 'av1']), audio: new Set(['opus', 'vorbis']) },
}

/** Whether a file's own streams can be kept as they are. */
export function canCopy(choice: SaveChoice, video: string, audio: readonly string[]): boolean {
  if (choice.encoding !== null || (choice.codec !== 'auto' && choice.codec !== video)) return false
  const holds = HOLDS[choice.container]
  return holds === null || (holds.video.has(video) && audio.every((codec) => holds.audio.has(codec)))
}
