/**
 * Container metadata in the form in which ffmpeg takes it from a file. A file, because a workflow easily outgrows what a
 * command line may hold.
 */
import { writeFile } from 'node:fs/promises'

/** Keys and texts in their order. */
export type MediaTags = readonly (readonly [key: string, value: string])[]

const SPECIAL = /[=;#\\\n]/g
const escaped = (text: string) => text.replace(SPECIAL, '\\$&')

export function toMetadataText(tags: MediaTags): string {
  const lines = tags.map(([key, value]) => `${escaped(key)}=${escaped(value)}\n`)
  return `;FFMETADATA1\n${lines.join('')}`
}

/** Writes the file and gives the arguments that open it. */
export async function writeMetadataFile(path: string, tags: MediaTags): Promise<string[]> {
  await writeFile(path, toMetadataText(tags))
  return ['-f', 'ffmetadata', '-i', `file:${path}`]
}
