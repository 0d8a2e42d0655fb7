/**
 * Writes outputs into a folder. Of a name from a server or a node only the base name is used. An existing file is never
 * overwritten: the next free number is added to the name. A file that did not arrive whole is removed.
 */
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type RunClient, UnreachableError } from '../server/client.ts'
import type { OutputView } from '../server/job-answers.ts'
import { CommandError, EXIT } from '../terminal.ts'

const MAX_NAME = 200
const ATTEMPTS = 3

// Control characters, and characters that other systems do not allow in a name.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
const UNSAFE = /[\u0000-\u001f\u007f<>:"|?*]/g

/** Makes a file name that cannot leave its folder, on any system. */
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
  const body = Readable.fromWeb(response.body as import('node:stream/web').ReadableStream)
  try {
    const { file } = await saveNewFile(body, { folder, name: output.name, sizeBytes: output.sizeBytes, signal })
    return file
  } catch (error) {
    if (signal.aborted || error instanceof CommandError) throw error
    throw new UnreachableError(`the download of ${output.name} broke off: ${(error as Error).message}`)
  }
}

interface NewFile {
  readonly folder: string
  readonly name: string
  /** How many bytes must arrive; null or absent: any number. */
  readonly sizeBytes?: number | null
  readonly signal?: AbortSignal
}

/** The folder must exist. Throws CommandError when the file cannot be written, and whatever the source throws. */
export async function saveNewFile(
  source: AsyncIterable<Uint8Array>,
  { folder, name, sizeBytes = null, signal }: NewFile,
): Promise<{ readonly file: string; readonly sizeBytes: number }> {
  const { file, stream } = await createNewFile(folder, toSafeName(name))
  try {
    await pipeline(source, stream, { signal })
    const { bytesWritten } = stream
    if (sizeBytes !== null && bytesWritten !== sizeBytes) {
      throw new Error(`${bytesWritten} of ${sizeBytes} bytes arrived`)
    }
    return { file, sizeBytes: bytesWritten }
  } catch (error) {
    await rm(file, { force: true })
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
    throw new CommandError(`cannot write ${file}: the disk is full`, EXIT.failed)
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
