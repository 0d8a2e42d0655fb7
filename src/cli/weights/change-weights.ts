/** `atelier weights add` and `remove`: an operator puts a file of weights on an engine that the service launched, and takes it away. */

import { openAsBlob } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { ENV } from '../../config/env.ts'
import { createDisplay, type RunDisplay } from '../run/display.ts'
import { mayPass, RefusedError, type RunClient } from '../server/client.ts'
import { toFields } from '../server/job-answers.ts'
import { createPersistence, hashFile } from '../server/resumable-upload.ts'
import { addServerFlags, askServer } from '../server/server-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'

type Options = Readonly<Record<string, unknown>>

export function addWeightChanges(weights: Command, terminal: Terminal, finish: Finish): void {
  const add = weights
    .command('add')
    .description('put a file of weights on an engine; the same command goes on with what was broken off')
    .argument('<file>', 'such as my-style.safetensors')
    .requiredOption('--folder <name>', 'the folder of the engine, such as checkpoints or loras')
    .option('--name <name>', 'its name there, which may have folders; left out: the name that it has here')
    .option('--engine <id>', 'left out: the first engine that the service launched')
  addOperatorFlags(add).action(async (file: string, options: Options) => finish(await put(file, options, terminal)))
  const remove = weights
    .command('remove')
    .description('remove a file of weights from an engine')
    .argument('<name>', 'as it is listed')
    .requiredOption('--folder <name>', 'the folder that it is in')
    .requiredOption('--engine <id>', 'the engine that has it')
    .option('--force', 'also while it is loaded')
  addOperatorFlags(remove).action(async (name: string, options: Options) => finish(await drop(name, options, terminal)))
}

export function addOperatorFlags(command: Command): Command {
  return addServerFlags(command).option(
    '--admin-token <token>',
    `the operator's token, where the service has one (env ${ENV.adminToken}; prefer the variable)`,
  )
}

/** Changing weights is the operator's: that token counts before the one of a user. */
export function asOperator(options: Options, { env }: Terminal): Options {
  const token = options['adminToken'] ?? env[ENV.adminToken] ?? options['token']
  return token === undefined ? options : { ...options, token }
}

function put(file: string, options: Options, terminal: Terminal): Promise<number> {
  const stop = new AbortController()
  const stopped = new CommandError('stopped; run the same command again to continue', EXIT.interrupted)
  const release = terminal.onSignal(() => stop.abort(stopped))
  return askServer(asOperator(options, terminal), terminal, async (client) => {
    const display = createDisplay(terminal)
    try {
      const { engine, name } = await sendWeights(client, {
        file: path.resolve(terminal.cwd, file),
        folder: String(options['folder']),
        name: typeof options['name'] === 'string' ? options['name'] : path.basename(file),
        engine: typeof options['engine'] === 'string' ? options['engine'] : null,
        display,
        signal: stop.signal,
      })
      display.end()
      printLine(terminal.stdout, toPrintable(`${engine}: ${options['folder']}/${name}`))
      return EXIT.ok
    } finally {
      display.end()
      release()
    }
  })
}

const REMOVE_WITHIN_MS = 60_000

function drop(name: string, options: Options, terminal: Terminal): Promise<number> {
  return askServer(asOperator(options, terminal), terminal, async (client) => {
    const query = new URLSearchParams({ engine: String(options['engine']), folder: String(options['folder']), name })
    if (options['force'] === true) query.set('force', 'true')
    await client.call(`/weights?${query}`, { method: 'DELETE', signal: AbortSignal.timeout(REMOVE_WITHIN_MS) })
    return EXIT.ok
  })
}

interface WeightsToSend {
  readonly file: string
  readonly folder: string
  readonly name: string
  /** null: the service chooses. */
  readonly engine: string | null
  readonly display: Pick<RunDisplay, 'say' | 'progress'>
  readonly signal: AbortSignal
}

interface Upload {
  readonly id: string
  readonly engine: string
  readonly offset: number
  readonly isComplete: boolean
}

// Small enough to show progress with, large enough that a request for each costs nothing.
const PART_BYTES = 32 * 1024 * 1024
const JSON_TYPE = { 'Content-Type': 'application/json' }
const PART_TYPE = 'application/offset+octet-stream'

export async function sendWeights(
  client: RunClient,
  { file, folder, name, engine, display, signal }: WeightsToSend,
): Promise<{ readonly engine: string; readonly name: string }> {
  const read = <Result>(reading: Promise<Result>) =>
    reading.catch((error: unknown) => {
      throw new CommandError(`cannot read ${file}: ${(error as Error).message}`, EXIT.usage)
    })
  const hash = `blake3:${await read(hashFile(file))}`
  const bytes = await read(openAsBlob(file))
  const { persist, succeed } = createPersistence({ mayPass: mayPassHere, signal })
  const linkOf = ({ id }: Upload) => `/weights/uploads/${id}`

  async function begin(): Promise<Upload> {
    const { uploads } = toFields(await client.read('/weights/uploads', signal))
    const open = (Array.isArray(uploads) ? uploads.map(toFields) : []).find(
      (one) =>
        one['folder'] === folder &&
        one['name'] === name &&
        one['hash'] === hash &&
        one['size_bytes'] === bytes.size &&
        (engine === null || one['engine'] === engine),
    )
    if (open !== undefined) return toUpload(open)
    const wish = { folder, name, size_bytes: bytes.size, hash, ...(engine === null ? {} : { engine }) }
    const begun = await client.call('/weights', {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify(wish),
      signal,
    })
    return toUpload(await begun.json())
  }

  async function send(upload: Upload): Promise<Upload> {
    const headers = { 'Content-Type': PART_TYPE, 'Upload-Offset': String(upload.offset) }
    const body = bytes.slice(upload.offset, upload.offset + PART_BYTES)
    return toUpload(await (await client.call(linkOf(upload), { method: 'PATCH', headers, body, signal })).json())
  }

  async function ask(upload: Upload): Promise<Upload> {
    try {
      return toUpload(await client.read(linkOf(upload), signal))
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 404) throw error
      // Complete, perhaps, and only the answer to the last part was lost.
      throw new CommandError('the upload is gone; `atelier weights` says whether the file is there', EXIT.failed)
    }
  }

  const begun = await begin()
  if (begun.offset > 0) display.say(`going on from byte ${begun.offset}`)
  for (let upload = begun; ; ) {
    display.progress({ value: bytes.size === 0 ? 1 : upload.offset / bytes.size, message: name })
    if (upload.isComplete) return { engine: upload.engine, name }
    const next = (await persist(() => send(upload))) ?? (await persist(() => ask(upload)))
    if (next === null) continue
    if (next.offset > upload.offset) succeed()
    upload = next
  }
}

/** A wrong hash stays wrong. The other conflicts are about where the next byte belongs, and about a request that is about to end. */
function mayPassHere(error: unknown): boolean {
  return mayPass(error) && !(error instanceof RefusedError && error.lines[0]?.startsWith('hash_mismatch'))
}

function toUpload(answer: unknown): Upload {
  const { id, engine, offset_bytes: offset, status } = toFields(answer)
  return { id: String(id), engine: String(engine), offset: Number(offset), isComplete: status === 'complete' }
}
