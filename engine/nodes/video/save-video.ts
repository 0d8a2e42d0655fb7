/** Videos as outputs. A file that already is what is wanted keeps its streams; only the metadata is ours. */
import { type ColorSpace, readVideoFacts } from '../../media/read-video.ts'
import { type BitDepth, type FileVideo, type FrameVideo, toVideoValue } from '../../media/video.ts'
import { type Container, copyFile, encodeFile, encodeFrames, type VideoEncoder } from '../../media/write-video.ts'
import { defineNode } from '../../node/define-node.ts'
import { defineDynamicNode, dynamicCombo } from '../../node/dynamic-node.ts'
import { combo, float, type InputKind, image, string } from '../../node/input-kinds.ts'
import type { MadeFile, MadeReport, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { viewOf } from '../../tensor/tensor.ts'
import { hidden, madeFromTexts, nameFile, outputTarget } from '../files/save-image.ts'
import { optionalGroup, video } from './make-video.ts'

// The choices that SaveVideo offers, and what they mean to the encoder.

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
const codecChoice = dynamicCombo(anyCodec, { hidden: true })

const formatChoice = dynamicCombo({
  auto: { required: { codec: dynamicCombo(anyCodec) } },
  mp4: { required: { codec: dynamicCombo(anyCodec) } },
  mkv: { required: { codec: dynamicCombo(anyCodec) } },
  webm: { required: { codec: dynamicCombo({ auto: {}, av1 }) } },
})

type Codec = 'h264' | 'av1'

interface SaveChoice {
  readonly container: Container
  readonly codec: Codec | 'auto'
  /** null: as it comes. */
  readonly encoding: { readonly crf: number; readonly colorSpace: ColorSpace | 'auto' } | null
}

type Format = ReturnType<typeof formatChoice.readGroup>
type CodecGroup = ReturnType<typeof codecChoice.readGroup>

function readChoice(format: Format, beside: CodecGroup | undefined): SaveChoice {
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
function toEncoder(
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
function canCopy(choice: SaveChoice, video: string, audio: readonly string[]): boolean {
  if (choice.encoding !== null || (choice.codec !== 'auto' && choice.codec !== video)) return false
  const holds = HOLDS[choice.container]
  return holds === null || (holds.video.has(video) && audio.every((codec) => holds.audio.has(codec)))
}

const CONTENT_TYPES = { mp4: 'video/mp4', mkv: 'video/x-matroska', webm: 'video/webm' } as const

function movingReport(file: MadeFile): MadeReport {
  return { images: [file], animated: [{ kind: 'value', value: true }] }
}

interface SaveRequest {
  readonly prefix: string
  readonly choice: SaveChoice
}

function targetOf({ prefix, choice }: SaveRequest, size: { width: number; height: number }, context: NodeContext) {
  const { container } = choice
  return outputTarget(context, { prefix, size, extension: container, contentType: CONTENT_TYPES[container] })
}

async function saveFrames(given: FrameVideo, request: SaveRequest, context: NodeContext): Promise<MadeFile> {
  const { choice } = request
  const target = targetOf(request, viewOf(given.images), context)
  const encoder = toEncoder(choice, { bitDepth: given.bitDepth, native: 'sRGB' })
  const bytes = await encodeFrames(
    given,
    { container: choice.container, encoder, tags: madeFromTexts(context) },
    context,
  )
  return nameFile(bytes, target, context)
}

async function saveFile(given: FileVideo, request: SaveRequest, context: NodeContext): Promise<MadeFile> {
  const { choice } = request
  const { stream, probe, duration } = await readVideoFacts(given, context)
  const target = targetOf(request, stream, context)
  if (duration <= 0)
    throw new NodeError('ValueError', `'${given.file.name}' has no frames in the part that was asked for`)
  const { window } = given
  const isWhole = window.start === 0 && window.duration === 0
  const audio = probe.audio.map(({ codec }) => codec)
  const options = { container: choice.container, tags: madeFromTexts(context) }
  if (isWhole && canCopy(choice, stream.codec, audio)) {
    return nameFile(await copyFile(given, options, context), target, context)
  }
  const encoder = toEncoder(choice, { bitDepth: stream.bitDepth, native: null })
  return nameFile(await encodeFile(given, { ...options, encoder }, context), target, context)
}

export const saveVideo = defineDynamicNode({
  classType: 'SaveVideo',
  displayName: 'Save Video',
  category: 'video',
  description: 'Writes a video as an output; what is already encoded as wanted stays as it is.',
  style: 'schema',
  required: {
    video,
    filename_prefix: string({ default: 'video/ComfyUI', multiline: false }),
    format: formatChoice,
  },
  optional: { codec: optionalGroup(codecChoice) },
  hidden,
  outputs: [{ type: 'VIDEO', name: 'video' }],
  isOutputNode: true,
  cost: 'compute',
  async run({ video: given, filename_prefix: prefix, format, codec }, context) {
    const request = { prefix, choice: readChoice(format, codec) }
    const file =
      given.kind === 'frames' ? await saveFrames(given, request, context) : await saveFile(given, request, context)
    return { outputs: [toVideoValue(given, context.allocate)], report: movingReport(file) }
  },
})

/** Declared upstream with whole numbers beside the fraction; they are published as they stand there. */
const crf: InputKind<number> = {
  spec: ['FLOAT', { ...float({ default: 32, max: 63 }).spec[1], min: 0, step: 1 }],
  read: float().read,
}

function webmEncoder(codec: 'vp9' | 'av1', quality: number, hasAlpha: boolean): VideoEncoder {
  const args = ['-crf', String(quality), '-b:v', '0']
  if (codec === 'av1') {
    return {
      name: 'libsvtav1',
      args: ['-crf', String(quality), '-preset', '6'],
      pixelFormat: 'yuv420p10le',
      colorSpace: null,
    }
  }
  return { name: 'libvpx-vp9', args, pixelFormat: hasAlpha ? 'yuva420p' : 'yuv420p', colorSpace: null }
}

export const saveWebm = defineNode({
  classType: 'SaveWEBM',
  displayName: 'Save WEBM',
  category: 'video',
  description: 'Writes images as a silent WebM video.',
  style: 'schema',
  experimental: true,
  required: {
    images: image({}),
    filename_prefix: string({ default: 'ComfyUI', multiline: false }),
    codec: combo(['vp9', 'av1']),
    fps: float({ default: 24, min: 0.01, max: 1000, step: 0.01 }),
    crf,
  },
  hidden,
  outputs: [{ type: 'IMAGE', name: 'images' }],
  isOutputNode: true,
  cost: 'compute',
  async run({ images, filename_prefix: prefix, codec, fps, crf: quality }, context) {
    const view = viewOf(images)
    const target = outputTarget(context, { prefix, size: view, extension: 'webm', contentType: CONTENT_TYPES.webm })
    const encoder = webmEncoder(codec, quality, view.channels === 4)
    const frames: FrameVideo = { kind: 'frames', images, audio: null, fps, bitDepth: 8 }
    const bytes = await encodeFrames(frames, { container: 'webm', encoder, tags: madeFromTexts(context) }, context)
    return { outputs: [images], report: movingReport(await nameFile(bytes, target, context)) }
  },
})
