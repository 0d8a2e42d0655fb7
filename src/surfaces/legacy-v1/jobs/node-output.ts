/**
 * The outputs of nodes as clients of this surface see them: those of a history entry, and for a list how many files a job made
 * and which of them is its preview. Pure; the rules are ComfyUI's.
 */

import { extensionOf } from '../../../../lib/files/mime.ts'
import type { RunRecord, ShownItem, ShownNode } from '../../../domain/jobs/run/record/run-record.ts'

interface OutputSummary {
  readonly outputs_count: number
  readonly previewable_outputs_count: number
  readonly preview_output: object | null
}

const PREVIEWABLE_KEYS: ReadonlySet<string> = new Set(['images', 'video', 'audio', '3d', 'text'])
const VISUAL_KEYS: ReadonlySet<string> = new Set(['images', 'video', 'audio', '3d'])
const MODEL_EXTENSIONS: ReadonlySet<string> = new Set(['obj', 'fbx', 'gltf', 'glb', 'usdz'])
const TEXT_EXTENSIONS: ReadonlySet<string> = new Set(['txt', 'md', 'json'])
const PREVIEW_TEXT_LENGTH = 1024

/** By node id. */
export function toOutputs(run: RunRecord | null): object {
  // Not by assignment: a node may be called `__proto__`.
  return Object.fromEntries((run?.nodes ?? []).map(({ nodeId, output }) => [nodeId, output]))
}

export function toMeta(run: RunRecord | null): object {
  return Object.fromEntries((run?.nodes ?? []).map((node) => [node.nodeId, toNodeMeta(node)]))
}

function toNodeMeta({ nodeId, displayNodeId, parentNodeId }: ShownNode): object {
  return { node_id: nodeId, display_node: displayNodeId, parent_node: parentNodeId, real_node_id: displayNodeId }
}

interface FileItem {
  readonly nodeId: string
  readonly key: string
  readonly item: Readonly<Record<string, unknown>>
}

export function summarize(run: RunRecord | null): OutputSummary {
  const files: FileItem[] = []
  const texts: { readonly nodeId: string; readonly text: string }[] = []
  for (const { nodeId, output } of run?.nodes ?? []) {
    for (const [key, items] of Object.entries(output)) {
      if (key === 'animated') continue
      for (const item of items) {
        const file = toFile(item)
        if (file !== null) files.push({ nodeId, key: file.isModel ? '3d' : key, item: file.item })
        else if (key === 'text' && typeof item === 'string') texts.push({ nodeId, text: item })
      }
    }
  }
  const previewable = files.filter(isPreviewable)
  return {
    outputs_count: files.length,
    previewable_outputs_count: previewable.length,
    preview_output: choosePreview(previewable, texts),
  }
}

/** A string with the ending of a 3D model counts as a file; every other plain value does not. */
function toFile(
  item: ShownItem,
): { readonly item: Readonly<Record<string, unknown>>; readonly isModel: boolean } | null {
  if (typeof item === 'string') {
    const isModel = MODEL_EXTENSIONS.has(extensionOf(item) ?? '')
    return isModel ? { item: { filename: item, type: 'output', subfolder: '' }, isModel } : null
  }
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return null
  return { item: item as Readonly<Record<string, unknown>>, isModel: false }
}

function endingOf({ item }: FileItem): string {
  return typeof item['filename'] === 'string' ? (extensionOf(item['filename']) ?? '') : ''
}

function isPreviewable(file: FileItem): boolean {
  const ending = endingOf(file)
  return PREVIEWABLE_KEYS.has(file.key) || MODEL_EXTENSIONS.has(ending) || TEXT_EXTENSIONS.has(ending)
}

/** A visual file of the output folder, else any visual one, else a saved text, else a text that was only shown. */
function choosePreview(
  files: readonly FileItem[],
  texts: readonly { readonly nodeId: string; readonly text: string }[],
): object | null {
  const visual = files.filter((file) => VISUAL_KEYS.has(file.key) || MODEL_EXTENSIONS.has(endingOf(file)))
  const chosen = visual.find(({ item }) => item['type'] === 'output') ?? visual[0] ?? files[0]
  if (chosen !== undefined) return { ...chosen.item, nodeId: chosen.nodeId, mediaType: chosen.key }
  const [text] = texts
  if (text === undefined) return null
  const isCut = text.text.length > PREVIEW_TEXT_LENGTH
  return {
    content: text.text.slice(0, PREVIEW_TEXT_LENGTH),
    ...(isCut && { truncated: true }),
    nodeId: text.nodeId,
    mediaType: 'text',
  }
}
