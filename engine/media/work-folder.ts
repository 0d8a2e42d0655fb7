/** A folder for the files of one call, gone when the call is: containers need an end that they can seek in. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** What one made file may be large. Given to ffmpeg too, which stops writing there. */
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
