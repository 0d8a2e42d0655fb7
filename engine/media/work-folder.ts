/** A folder for the files of one call, removed when the call ends: ffmpeg must be able to seek in what it writes. */
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FileTags } from '../files/file-tags.ts'
import { NodeError } from '../node/node-error.ts'

export interface WorkFolder extends AsyncDisposable {
  file(name: string): string
}

export async function openWorkFolder(): Promise<WorkFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-media-'))
  return {
    file: (name) => join(folder, name),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The largest file that may be made. ffmpeg is told too, and stops writing there. */
export const MAX_MADE_BYTES = 1_073_741_824

/** The whole file in memory of its own. */
export async function readMade(path: string, purpose: string): Promise<Uint8Array<ArrayBuffer>> {
  await using file = await open(path)
  const { size } = await file.stat()
  if (size >= MAX_MADE_BYTES) {
    throw new NodeError('OSError', `${purpose} made a file of more than ${MAX_MADE_BYTES / 1_048_576} MiB`)
  }
  const bytes = new Uint8Array(size)
  let at = 0
  while (at < size) {
    const { bytesRead } = await file.read(bytes, at, size - at, at)
    if (bytesRead === 0) break
    at += bytesRead
  }
  return bytes
}

const SPECIAL = /[=;#\\\n]/g
const escaped = (text: string) => text.replace(SPECIAL, '\\$&')

/** Container metadata as ffmpeg reads it from a file: a workflow easily outgrows what a command line may hold. */
export function toMetadataText(tags: FileTags): string {
  const lines = tags.map(([key, value]) => `${escaped(key)}=${escaped(value)}\n`)
  return `;FFMETADATA1\n${lines.join('')}`
}

/** Writes the file and gives the arguments that open it. */
export async function writeMetadataFile(path: string, tags: FileTags): Promise<string[]> {
  await writeFile(path, toMetadataText(tags))
  return ['-f', 'ffmetadata', '-i', `file:${path}`]
}
