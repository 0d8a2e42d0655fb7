/**
 * What all nodes that save have in common: what a file remembers of how it was made, and how files are named. Numbers are
 * taken when everything is encoded, so that a failed or cancelled save leaves no gap.
 */
import { isJsonObject, type JsonObject } from '../../../lib/json/lossless-json.ts'
import { pythonJsonDumps } from '../../../lib/python/values.ts'
import type { FileTags } from '../../files/file-tags.ts'
import { BATCH_TOKEN, type OutputName, readPrefix } from '../../files/output-name.ts'
import type { MadeFile, NodeContext } from '../../node/node-context.ts'
import type { ImageView } from '../../tensor/tensor.ts'

export const hidden = { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' } as const

/** The graph, then the members of `extra_pnginfo`. */
export function madeFrom({
  hidden: { prompt, extraPngInfo },
}: NodeContext): readonly (readonly [string, JsonObject])[] {
  const info = extraPngInfo()
  const members = isJsonObject(info) ? Object.entries(info) : []
  return [['prompt', prompt()], ...(members as [string, JsonObject][])]
}

/** The same as texts. */
export function madeFromTexts(context: NodeContext): FileTags {
  return madeFrom(context).map(([key, value]) => [key, pythonJsonDumps(value)] as const)
}

export interface SaveTarget extends OutputName {
  readonly folder: 'output' | 'temp'
  readonly extension: string
  readonly contentType: string
  /** Most names end in an underscore before the extension, some do not. */
  readonly ending: '_' | ''
}

interface TargetOptions {
  readonly prefix: string
  readonly size?: { readonly width: number; readonly height: number }
  readonly ending?: '_' | ''
  readonly extension: string
  readonly contentType: string
}

/** Where an output goes. Throws NodeError for a prefix that leads elsewhere. */
export function outputTarget(context: NodeContext, options: TargetOptions): SaveTarget {
  const { prefix, size = { width: 0, height: 0 }, ending = '_', extension, contentType } = options
  return { ...readPrefix(prefix, { ...size, now: context.now }), folder: 'output', ending, extension, contentType }
}

/** Where a preview goes; its name belongs to the node for as long as the engine lives. */
export function previewTarget(context: NodeContext, options: Omit<TargetOptions, 'prefix' | 'size'>, stem = 'ComfyUI') {
  return {
    ...outputTarget(context, { ...options, prefix: `${stem}_temp_${context.instanceLetters}` }),
    folder: 'temp',
  } as const
}

function fileName({ ending, extension }: SaveTarget, base: string, number: number): string {
  return `${base}_${String(number).padStart(5, '0')}${ending}.${extension}`
}

/** One image of a batch to encode. */
export interface EncodeOne {
  readonly index: number
  readonly texts: FileTags
  checkpoint(): void
}

/** Every image of a batch as a file that remembers how it was made; progress is told where there are several. */
export async function encodeAll(
  { batch }: Pick<ImageView, 'batch'>,
  encodeOne: (one: EncodeOne) => Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>>,
  context: NodeContext,
): Promise<Uint8Array<ArrayBuffer>[]> {
  const texts = madeFromTexts(context)
  const encoded: Uint8Array<ArrayBuffer>[] = []
  for (let index = 0; index < batch; index++) {
    encoded.push(await encodeOne({ index, texts, checkpoint: context.checkpoint }))
    if (batch > 1) context.progress(index + 1, batch, { isOwn: true })
  }
  return encoded
}

/** Names for the files of a batch. A name that counts its members itself starts anew every time, as in ComfyUI. */
export async function nameFiles(
  encoded: readonly Uint8Array<ArrayBuffer>[],
  target: SaveTarget,
  context: NodeContext,
): Promise<MadeFile[]> {
  const { folder, subfolder, baseName, contentType } = target
  const countsItself = baseName.includes(BATCH_TOKEN)
  const first = countsItself ? 1 : await context.reserveNumbers(folder, subfolder, baseName, encoded.length)
  return encoded.map((bytes, index) => {
    const filename = fileName(target, baseName.replaceAll(BATCH_TOKEN, String(index)), first + index)
    return { kind: 'file', filename, subfolder, folder, contentType, bytes }
  })
}

/** The name of the one file that a node makes; it holds a whole batch, so nothing in the name counts. */
export async function nameFile(
  bytes: Uint8Array<ArrayBuffer>,
  target: SaveTarget,
  context: NodeContext,
): Promise<MadeFile> {
  const { folder, subfolder, baseName, contentType } = target
  const number = await context.reserveNumbers(folder, subfolder, baseName, 1)
  return { kind: 'file', filename: fileName(target, baseName, number), subfolder, folder, contentType, bytes }
}
