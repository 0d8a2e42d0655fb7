/**
 * Writes a job's outputs into a folder. A name from the server is only ever a base name, and an existing file is never
 * overwritten: the next free number goes into the name. A file that could not be received whole is not left behind.
 */
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { CommandError, EXIT } from '../terminal.ts'
import { type RunClient, UnreachableError } from './client.ts'
import type { OutputView } from './wire.ts'

const MAX_NAME = 200
const ATTEMPTS = 3

// Controls, and what other systems do not allow in a name.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
const UNSAFE = /[\u0000-\u001f\u007f<>:"|?*]/g

/** A name that stays in its folder on every system. */
export function toSafeName(name: string): string {
  const base = name.split(/[\\/]/).at(-1) ?? ''
  const plain = base
    .replaceAll(UNSAFE, '_')
    .replace(/^\.+/, '_')
    .replace(/[. ]+$/, '')
  const { name: stem, ext } = path.parse(plain)
  return `${stem.slice(0, MAX_NAME)}${ext.slice(0, 20)}` || 'output'
}

export async function saveOutput(
  client: RunClient,
  output: OutputView,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  await mkdir(folder, { recursive: true })
  for (let attempt = 1; ; attempt++) {
    try {
      return await saveOnce(client, output, folder, signal)
    } catch (error) {
      if (attempt === ATTEMPTS || !(error instanceof UnreachableError)) throw error
    }
  }
}

async function saveOnce(client: RunClient, output: OutputView, folder: string, signal: AbortSignal): Promise<string> {
  const response = await client.download(output.url, signal)
  if (response.body === null) throw new UnreachableError(`${output.name} came without a body`)
  const { file, stream } = await createNewFile(folder, toSafeName(output.name))
  try {
    await pipeline(Readable.fromWeb(response.body as import('node:stream/web').ReadableStream), stream, { signal })
    if (output.sizeBytes !== null && stream.bytesWritten !== output.sizeBytes) {
      throw new Error(`${stream.bytesWritten} of ${output.sizeBytes} bytes arrived`)
    }
    return file
  } catch (error) {
    await rm(file, { force: true })
    if (signal.aborted) throw error
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new CommandError(`cannot write ${file}: the disk is full`, EXIT.failed)
    throw new UnreachableError(`the download of ${output.name} broke off: ${(error as Error).message}`)
  }
}

const MAX_SAME_NAME = 10_000

async function createNewFile(folder: string, name: string) {
  const { name: stem, ext } = path.parse(name)
  for (let number = 1; number <= MAX_SAME_NAME; number++) {
    const file = path.join(folder, number === 1 ? name : `${stem}-${number}${ext}`)
    const stream = createWriteStream(file, { flags: 'wx' })
    const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
      stream.once('open', () => resolve(null))
      stream.once('error', resolve)
    })
    if (failure === null) return { file, stream }
    if (failure.code !== 'EEXIST') throw new CommandError(`cannot write ${file}: ${failure.message}`, EXIT.failed)
  }
  throw new CommandError(
    `${folder} already has ${MAX_SAME_NAME} files called ${name}; choose another --out`,
    EXIT.failed,
  )
}
