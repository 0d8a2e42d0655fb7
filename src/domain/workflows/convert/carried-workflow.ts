/**
 * Which of the texts in a media file is the workflow. A file that ComfyUI saved carries both the graph that made it and the
 * workflow of the editor; the graph is exact and needs no conversion, so it comes first.
 */
import type { EmbeddedTexts } from '../../../../lib/files/embedded/embedded-texts.ts'

const NAMES = ['prompt', 'workflow']

/** JSON texts, the better one first; empty when the file carries no workflow. */
export function carriedTexts(texts: EmbeddedTexts): string[] {
  return NAMES.flatMap((name) => texts.get(name) ?? []).filter((text) => text.trimStart().startsWith('{'))
}

const NOT_A_NUMBER = /(?<![\w"])-?(?:NaN|Infinity)(?![\w"])/g

/** Python writes numbers that JSON does not have. */
export function withoutOddNumbers(text: string): string {
  return text.replace(NOT_A_NUMBER, 'null')
}
