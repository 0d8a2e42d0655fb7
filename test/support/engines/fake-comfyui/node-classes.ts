/**
 * The node classes that the fake server runs for real, and how it describes them. Those of ComfyUI have the recorded
 * descriptions; the others exist to be observed:
 *
 * | class | does |
 * |---|---|
 * | DemoSteps | `steps` steps of `ms`, each with progress and (`preview`) a picture; gives an image |
 * | DemoText | sends `hello text` as a text frame, passes the image on |
 * | DemoPrint | prints `text` |
 * | DemoRaise | raises `exception_type` with `message` |
 * | DemoReport | reports `output` (JSON text) as it is, for values of every kind |
 * | DemoVideo | writes `filename` and reports it under `images`, as ComfyUI reports videos |
 * | DemoPicker | loads one of the files that lie directly in the input folder, as nodes of other authors do |
 * | DemoStamp | saves its `filename_prefix` as a text: the bytes tell which attempt saved them |
 * | DemoPid | reports the id of the process that runs it |
 * | DemoSilent | an output node without any output |
 * | DemoBlocker | blocks the branch after it |
 * | DemoSigned | saves a picture and a sound with the prompt in them, as the savers of ComfyUI do |
 * | DemoPicky | of another author, with a validator: takes any `mode` and `strength` of at most 6, and only links that it likes |
 */
import { readFileSync } from 'node:fs'
import type { NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { defineClass } from '../recorded-catalog.ts'
import { type Picture, toPng } from './picture.ts'

export interface SavedFile {
  readonly filename: string
  readonly subfolder: string
  readonly type: 'output' | 'temp'
  /** Only with an asset store. */
  readonly id?: string
}

/** What a node may do while it runs. Everything that waits ends with an interrupt. */
export interface NodeContext {
  readonly nodeId: string
  readonly inputs: Readonly<Record<string, unknown>>
  /** The whole graph as JSON. */
  readonly prompt: string
  sleep(ms: number): Promise<void>
  progress(value: number, max: number, preview?: Buffer): void
  text(text: string): void
  print(line: string): void
  save(prefix: string, type: 'output' | 'temp', extension: string, bytes: Buffer): SavedFile
  isInputThere(name: string): boolean
  /** Loads weights unless they are loaded. */
  loadWeights(name: string): Promise<void>
}

export interface NodeResult {
  readonly outputs?: readonly unknown[]
  readonly ui?: Readonly<Record<string, unknown>>
}

export class PythonException extends Error {
  readonly type: string
  constructor(type: string, message: string) {
    super(message)
    this.type = type
  }
}

type Run = (context: NodeContext) => Promise<NodeResult> | NodeResult

const OUTSIDE = '**** ERROR: Saving image outside the output folder is not allowed.'
/** What a node gives out that blocks the nodes after it without a message. */
const BLOCKER = 'execution blocker'
const BLACK: Picture = { width: 8, height: 8, color: 0 }

function picturesOf(value: unknown): readonly Picture[] {
  return Array.isArray(value) ? (value as Picture[]) : [BLACK]
}

function saveAll({ inputs, save }: NodeContext, prefix: string, type: 'output' | 'temp'): NodeResult {
  if (inputs.images === BLOCKER) return {}
  const pictures = picturesOf(inputs.images)
  if (prefix.split('/').includes('..')) throw new PythonException('Exception', OUTSIDE)
  return { outputs: [pictures], ui: { images: pictures.map((picture) => save(prefix, type, 'png', toPng(picture))) } }
}

export const RUN: Readonly<Record<string, Run>> = {
  EmptyImage({ inputs }) {
    const picture = { width: Number(inputs.width), height: Number(inputs.height), color: Number(inputs.color) }
    return { outputs: [Array.from({ length: Number(inputs.batch_size ?? 1) }, () => picture)] }
  },
  LoadImage: ({ inputs, isInputThere }) => {
    const name = String(inputs.image)
    if (!isInputThere(name)) throw new PythonException('FileNotFoundError', `no such file: ${name}`)
    // The content-addressed name stands for the content.
    return {
      outputs: [[{ width: 4, height: 4, color: Number.parseInt(/[0-9a-f]{6}/.exec(name)?.[0] ?? '0', 16) }], null],
    }
  },
  SaveImage: (context) => saveAll(context, String(context.inputs.filename_prefix), 'output'),
  PreviewImage: (context) => saveAll(context, 'ComfyUI_temp_abcde', 'temp'),
  PrimitiveString: ({ inputs }) => ({ outputs: [inputs.value] }),
  PreviewAny: ({ inputs }) => ({ ui: { text: [String(inputs.source)] } }),
  ImageBlend: ({ inputs }) => ({ outputs: [picturesOf(inputs.image1)] }),
  ImageInvert: ({ inputs }) => ({
    outputs: [picturesOf(inputs.image).map((picture) => ({ ...picture, color: picture.color ^ 0xffffff }))],
  }),
  async CheckpointLoaderSimple({ inputs, loadWeights }) {
    const name = String(inputs.ckpt_name)
    await loadWeights(name)
    return { outputs: [name, name, name] }
  },
  CLIPTextEncode: ({ inputs }) => ({ outputs: [inputs.text] }),
  EmptyLatentImage: ({ inputs }) => ({
    outputs: [[{ width: Number(inputs.width), height: Number(inputs.height), color: 0 }]],
  }),
  VAEEncode: ({ inputs }) => ({ outputs: [picturesOf(inputs.pixels)] }),
  KSampler({ inputs, progress }) {
    const steps = Number(inputs.steps)
    for (let step = 1; step <= steps; step++) progress(step, steps)
    return { outputs: [picturesOf(inputs.latent_image).map((picture) => ({ ...picture, color: Number(inputs.seed) }))] }
  },
  VAEDecode: ({ inputs }) => ({ outputs: [picturesOf(inputs.samples)] }),
  async SaveImageWebsocket({ inputs, progress }) {
    const pictures = picturesOf(inputs.images)
    for (const [index, picture] of pictures.entries()) progress(index, pictures.length, toPng(picture))
    return {}
  },
  async DemoSteps({ inputs, sleep, progress }) {
    const steps = Number(inputs.steps)
    for (let step = 1; step <= steps; step++) {
      await sleep(Number(inputs.ms ?? 0))
      progress(step, steps, inputs.preview === true ? toPng({ ...BLACK, color: step }) : undefined)
    }
    return { outputs: [picturesOf(inputs.image)] }
  },
  DemoText({ inputs, text }) {
    text('hello text')
    return { outputs: [picturesOf(inputs.image)] }
  },
  DemoPrint({ inputs, print }) {
    print(String(inputs.text))
    return { outputs: [picturesOf(inputs.image)] }
  },
  DemoRaise({ inputs }) {
    throw new PythonException(String(inputs.exception_type), String(inputs.message))
  },
  TestSyncError() {
    throw new PythonException('RuntimeError', 'Intentional sync execution error for testing')
  },
  DemoReport: ({ inputs }) => ({ ui: JSON.parse(String(inputs.output)) as Record<string, unknown> }),
  DemoVideo({ inputs, save }) {
    const [base = 'video', extension = 'mp4'] = String(inputs.filename).split('.')
    const file = save(base, 'output', extension, Buffer.from('not really a video'))
    return { ui: { images: [file], animated: [true] } }
  },
  DemoStamp({ inputs, save }) {
    const prefix = String(inputs.filename_prefix)
    return { ui: { files: [save(prefix, 'output', 'txt', Buffer.from(prefix))] } }
  },
  DemoPicker: () => ({ outputs: [[BLACK]] }),
  DemoPid: () => ({ ui: { pid: [process.pid] } }),
  DemoSilent: () => ({}),
  DemoBlocker: () => ({ outputs: [BLOCKER] }),
  DemoSigned({ inputs, prompt, save }) {
    const prefix = String(inputs.filename_prefix)
    const sound = Buffer.from(`fLaC\0\0prompt=${prompt}\0sound`)
    return {
      ui: {
        images: [save(prefix, 'output', 'png', toPng(BLACK, prompt))],
        audio: [save(prefix, 'output', 'flac', sound)],
      },
    }
  },
  DemoPicky: () => ({ outputs: [[BLACK]] }),
}

const recorded = parseLosslessJson(
  readFileSync(new URL('../../../fixtures/object_info.json', import.meta.url), 'utf8'),
) as unknown as Record<string, NodeDefinition>

const image = ['IMAGE', {}] as const
const int = (value: number) => ['INT', { default: value, min: 0, max: 1_000_000 }] as const
const string = ['STRING', { default: '' }] as const

const DEMO: Readonly<Record<string, NodeDefinition>> = {
  DemoSteps: defineClass('DemoSteps', {
    input: { required: { steps: int(3), ms: int(0), preview: ['BOOLEAN', {}] }, optional: { image, seed: int(0) } },
    output: ['IMAGE'],
  }),
  DemoText: defineClass('DemoText', { input: { required: { image } }, output: ['IMAGE'] }),
  DemoPrint: defineClass('DemoPrint', { input: { required: { image, text: string } }, output: ['IMAGE'] }),
  DemoRaise: defineClass('DemoRaise', {
    input: { required: { image, exception_type: string, message: string } },
    output: ['IMAGE'],
  }),
  TestSyncError: defineClass('TestSyncError', { input: { required: { value: ['*', {}] } }, output: ['*'] }),
  DemoReport: defineClass('DemoReport', { input: { required: { output: string } }, output_node: true }),
  DemoVideo: defineClass('DemoVideo', { input: { required: { filename: string } }, output_node: true }),
  DemoStamp: defineClass('DemoStamp', { input: { required: { filename_prefix: string } }, output_node: true }),
  DemoPid: defineClass('DemoPid', { input: { required: { image } }, output_node: true }),
  DemoBlocker: defineClass('DemoBlocker', { input: { required: { image } }, output: ['IMAGE'] }),
  DemoSilent: defineClass('DemoSilent', { input: { required: { image } }, output_node: true }),
  DemoSigned: defineClass('DemoSigned', {
    input: { required: { image, filename_prefix: string } },
    output_node: true,
  }),
  DemoPicky: defineClass('DemoPicky', {
    input: {
      required: { strength: ['FLOAT', { default: 0.5, min: 0, max: 1 }] },
      optional: { mode: [['soft', 'hard'], {}], like: ['MASK', {}], image: [['none'], { image_upload: true }] },
    },
    output: ['IMAGE'],
    python_module: 'custom_nodes.demo',
  }),
}

export interface Installed {
  /** Files that lie directly in the input folder. */
  readonly inputFiles: readonly string[]
  readonly checkpoints: readonly string[]
  /** Classes that this server lacks. */
  readonly without: readonly string[]
  /** Classes of packs, each with its module. They are listed and cannot be run. */
  readonly packs?: Readonly<Record<string, string>>
}

export function describeClasses({
  checkpoints,
  without,
  inputFiles,
  packs = {},
}: Installed): Record<string, NodeDefinition> {
  const loader = recorded.CheckpointLoaderSimple as NodeDefinition
  const withWeights = { ...loader, input: { required: { ckpt_name: [checkpoints, {}] as const } } }
  const picker = defineClass('DemoPicker', {
    input: { required: { image: [inputFiles, { image_upload: true, only_listed: true }] } },
    output: ['IMAGE'],
  })
  const ofPacks = Object.entries(packs).map(([name, module]) => [
    name,
    defineClass(name, { input: { required: {} }, output: ['STRING'], python_module: module }),
  ])
  const demo = { DemoPicker: picker, ...DEMO, CheckpointLoaderSimple: withWeights }
  const all: Record<string, NodeDefinition> = { ...recorded, ...demo, ...Object.fromEntries(ofPacks) }
  return Object.fromEntries(Object.entries(all).filter(([name]) => !without.includes(name)))
}
