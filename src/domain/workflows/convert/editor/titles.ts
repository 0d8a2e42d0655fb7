/** What the editor calls a node that its user gave no title. */
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'

/** The editor's own English words come before those of the server; these are the classes where the two differ. */
const EDITOR_WORDS: Readonly<Record<string, string>> = {
  LTXVConcatAVLatent: 'LTXVConcatAVLatent',
  LTXVSeparateAVLatent: 'LTXVSeparateAVLatent',
  ByteDanceSeedreamNodeV2: 'ByteDance Seedream 4.5 & 5.0',
  ByteDance2ReferenceNode: 'ByteDance Seedance 2.5 Reference to Video',
  IdeogramPImage: 'Ideogram P-Image',
  TopazImageEnhance: 'Topaz Image Enhance',
}

export function titleOf({ name, display_name: word }: NodeDefinition): string {
  return Object.hasOwn(EDITOR_WORDS, name) ? EDITOR_WORDS[name] : word || name
}

export const VIRTUAL_TITLES: ReadonlyMap<string, string> = new Map([
  ['Note', 'Note'],
  ['MarkdownNote', 'Markdown Note'],
  ['Reroute', 'Reroute'],
  ['PrimitiveNode', 'Primitive'],
])
