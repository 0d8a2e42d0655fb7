/**
 * Input files as the engine's threads read them: by path. Bytes that already lie in a local file are read where they are;
 * others are written to a folder of the run, which goes with the run.
 */
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { InputFile } from '../node/node-context.ts'

/** An input file on its way into the engine. */
export interface InputSource {
  /** Stands for the content: results are reused for files with the same hash. */
  readonly hash: string
  /** Set when the bytes lie in a file of this machine. */
  readonly localPath: string | null
  /** Fetches the bytes into a file of this machine, which stays until it is given back. */
  borrow?(signal: AbortSignal): Promise<{ readonly path: string } & AsyncDisposable>
  read(): AsyncIterable<Uint8Array>
}

interface InputFiles extends AsyncDisposable {
  readonly files: Readonly<Record<string, InputFile>>
}

export async function openInputFiles(
  inputs: ReadonlyMap<string, InputSource>,
  signal: AbortSignal,
): Promise<InputFiles> {
  const files: [string, InputFile][] = []
  let folder: string | null = null
  const borrowed = new AsyncDisposableStack()
  const remove = async () => {
    await borrowed.disposeAsync()
    if (folder !== null) await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const [name, input] of inputs) {
      let path = input.localPath ?? (input.borrow && borrowed.use(await input.borrow(signal)).path) ?? null
      if (path === null) {
        folder ??= await mkdtemp(join(tmpdir(), 'atelier-inputs-'))
        // The name in the graph is the caller's: the file is named by its place instead.
        path = join(folder, String(files.length))
        await pipeline(input.read(), createWriteStream(path), { signal })
      }
      files.push([name, { path, hash: input.hash }])
    }
  } catch (error) {
    await remove()
    throw error
  }
  return { files: Object.fromEntries(files), [Symbol.asyncDispose]: remove }
}
