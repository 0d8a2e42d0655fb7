/**
 * Input files as the engine's threads read them: by path. Bytes that already lie in a local file are read where they are;
 * others are written to a folder of the run, which goes with the run.
 */

import { createHash, hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path, { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { inOneChunk } from '../../lib/files/byte-streams.ts'
import type { FileNames } from '../graph/file-inputs.ts'
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

// The files that a graph names, looked for among those that the caller handed in and in the caller's folder of inputs. A name in
// a graph never leads out of that folder.

/** The path of a file on this machine, its bytes, or a source of them. */
export type GivenInput = string | Uint8Array | InputSource

export interface GivenInputs {
  readonly files: ReadonlyMap<string, GivenInput>
  readonly folder: string | null
}

interface FoundInputs {
  readonly sources: ReadonlyMap<string, InputSource>
  /** Folders named by the graph that hold at least one file. */
  readonly folders: ReadonlySet<string>
}

// ComfyUI writes the folder of a file behind its name; here there is one folder only.
const INPUT_ANNOTATION = / \[input\]$/
const LEADS_ELSEWHERE = /^\/|\\|\0|(^|\/)\.\.(\/|$)/

/** Names that stand for no file are left out: validation says what that means. */
export async function findInputs({ names, folders }: FileNames, given: GivenInputs): Promise<FoundInputs> {
  const sources = new Map<string, InputSource>()
  for (const name of names) {
    const file = await findFile(name, given)
    if (file !== null) sources.set(name, await toSource(file))
  }
  const found = new Set<string>()
  for (const folder of folders) {
    for (const [name, file] of await listFolder(folder, given)) {
      sources.set(`${folder}/${name}`, await toSource(file))
      found.add(folder)
    }
  }
  return { sources, folders: found }
}

async function findFile(name: string, { files, folder }: GivenInputs): Promise<GivenInput | null> {
  const bare = name.replace(INPUT_ANNOTATION, '')
  const given = files.get(name) ?? files.get(bare)
  if (given !== undefined) return given
  const file = toPathInside(folder, bare)
  return file !== null && (await isFile(file)) ? file : null
}

async function listFolder(name: string, { files, folder }: GivenInputs): Promise<Map<string, GivenInput>> {
  const bare = name.replace(INPUT_ANNOTATION, '').replace(/\/+$/, '')
  const found = new Map<string, GivenInput>()
  const directory = toPathInside(folder, bare)
  const entries = directory === null ? [] : await readdir(directory).catch(() => [])
  for (const entry of entries.sort()) {
    const file = path.join(directory ?? '', entry)
    if (await isFile(file)) found.set(entry, file)
  }
  for (const [key, file] of files) {
    if (key.startsWith(`${bare}/`) && !key.slice(bare.length + 1).includes('/'))
      found.set(key.slice(bare.length + 1), file)
  }
  return found
}

function toPathInside(folder: string | null, name: string): string | null {
  return folder === null || name === '' || LEADS_ELSEWHERE.test(name) ? null : path.join(folder, name)
}

/** A pipe or a device that stands in the folder is no input: reading it could wait for ever. */
async function isFile(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => null)
  return found?.isFile() === true
}

export async function toSource(given: GivenInput): Promise<InputSource> {
  if (typeof given === 'string') {
    return { hash: await hashFile(given), localPath: path.resolve(given), read: () => createReadStream(given) }
  }
  if (!(given instanceof Uint8Array)) return given
  return { hash: hash('sha256', given), localPath: null, read: () => inOneChunk(given) }
}

async function hashFile(file: string): Promise<string> {
  const sum = createHash('sha256')
  await pipeline(createReadStream(file), sum)
  return sum.digest('hex')
}
