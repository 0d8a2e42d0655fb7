/**
 * A name for everything that the bytes of a result depend on beside the graph and its files: the code of the engine, the libraries
 * that it calls, and the processor. Two engines with the same name give the same bytes; with another name they may not.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeSharp } from '../lib/files/load-sharp.ts'

const home = path.dirname(fileURLToPath(new URL('.', import.meta.url)))
const SOURCES = ['engine', 'lib']
const IS_CODE = /\.[jt]s$/
const IS_NO_PART = /(?:^|[/\\])test[/\\]|\.test\.[jt]s$|\.d\.ts$/

/** A digest of the code, put in by the build of the program (scripts/bundle-program.ts): a start would read 350 files for it. */
declare const ENGINE_CODE: string | undefined

export async function readEngineBuild(): Promise<string> {
  const { node, v8, zlib } = process.versions
  const surroundings = { node, v8, zlib, sharp: describeSharp(), cpu: cpus()[0]?.model ?? '', arch: process.arch }
  const code = typeof ENGINE_CODE === 'string' ? ENGINE_CODE : await digestEngineCode()
  return createHash('sha256').update(JSON.stringify(surroundings)).update(code).digest('base64url')
}

async function digestEngineCode(): Promise<string> {
  const hash = createHash('sha256')
  for (const file of await findSources()) {
    const bytes = await readFile(path.join(home, file))
    hash.update(`\0${file}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('base64url')
}

async function findSources(): Promise<string[]> {
  const found = await Promise.all(
    SOURCES.map(async (folder) =>
      (await readdir(path.join(home, folder), { recursive: true }))
        .filter((name) => IS_CODE.test(name) && !IS_NO_PART.test(name))
        .map((name) => path.join(folder, name)),
    ),
  )
  return found.flat().sort()
}
