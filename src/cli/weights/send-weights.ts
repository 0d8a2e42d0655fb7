/**
 * Sends a file of weights in parts. What has arrived survives a broken line, a killed service and a killed command: the upload is found
 * again by its folder, its name and the hash of the file, and goes on where it was.
 */
import { openAsBlob } from 'node:fs'
import type { RunDisplay } from '../run/display.ts'
import { mayPass, RefusedError, type RunClient } from '../server/client.ts'
import { hashFile } from '../server/hash-file.ts'
import { toFields } from '../server/job-answers.ts'
import { createPersistence } from '../server/persistence.ts'
import { CommandError, EXIT } from '../terminal.ts'

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
