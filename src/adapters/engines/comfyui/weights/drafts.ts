/**
 * Files that are being uploaded into a folder of models: each lies aside as `<id>.part`, and beside it `<id>.json` says what it is
 * to become and how much of it is safe. Bytes beyond that are those of a write that was cut off, and are cut off, too.
 */

import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { leadsOut, nullWhenMissing } from '../../../../../lib/files/inside-folder.ts'
import { writeFileWhole } from '../../../../../lib/files/write-file-whole.ts'
import type { DraftBytes, WeightDraft } from '../../../../domain/engine/weights/weight-store.ts'
import { invalidField, ServiceError } from '../../../../domain/errors.ts'

const MARK = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.json$/
const MAX_MARK_BYTES = 16_384
// A part may be a whole file of many gigabytes: what came of it must not be lost with the process.
const SYNC_EVERY_BYTES = 64 * 1024 * 1024

/** `folder`: the real path of the folder of models. Throws invalid_field when our own folder in it is not inside. */
export async function ownFolder(folder: string): Promise<string> {
  const own = join(folder, OWN_FOLDER)
  await mkdir(own, { recursive: true, mode: 0o700 })
  if (await leadsOut(folder, join(own, 'x'))) throw invalidField('folder', 'has a link in it that leads out of it')
  return own
}

export const partOf = (own: string, { id }: Pick<WeightDraft, 'id'>) => join(own, `${id}.part`)
const markOf = (own: string, { id }: Pick<WeightDraft, 'id'>) => join(own, `${id}.json`)

async function writeMark(own: string, draft: WeightDraft): Promise<void> {
  const { touchedAt: _touchedAt, ...kept } = draft
  await writeFileWhole(markOf(own, draft), JSON.stringify(kept), { mode: 0o600, isDurable: true })
}

/** Those of one folder; what cannot be read as one is none. */
export async function readDrafts(folder: string): Promise<readonly WeightDraft[]> {
  const own = join(folder, OWN_FOLDER)
  const names = (await readdir(own).catch(nullWhenMissing)) ?? []
  const drafts = await Promise.all(names.filter((name) => MARK.test(name)).map((name) => readMark(join(own, name))))
  return drafts.filter((draft) => draft !== null)
}

async function readMark(path: string): Promise<WeightDraft | null> {
  try {
    const { size, mtime } = await stat(path)
    if (size > MAX_MARK_BYTES) return null
    const { id, folder, name, sizeBytes, hash, offsetBytes } = JSON.parse(await readFile(path, 'utf8')) as WeightDraft
    const isSound =
      [id, folder, name].every((text) => typeof text === 'string') &&
      [sizeBytes, offsetBytes].every((count) => Number.isSafeInteger(count) && count >= 0) &&
      (hash === null || typeof hash === 'string') &&
      path.endsWith(`${id}.json`)
    return isSound ? { id, folder, name, sizeBytes, hash, offsetBytes, touchedAt: mtime } : null
  } catch {
    return null
  }
}

export async function createPart(own: string, draft: WeightDraft): Promise<void> {
  const file = await open(partOf(own, draft), 'wx', 0o600)
  await file.close()
  await writeMark(own, draft)
}

export async function removeDraft(own: string, draft: WeightDraft): Promise<void> {
  // First the mark: a part without one is nothing, a mark without its part would be an upload that cannot go on.
  await rm(markOf(own, draft), { force: true })
  await rm(partOf(own, draft), { force: true })
}

/** Never follows a link that somebody put in the place of a part. */
export function openPart(own: string, draft: WeightDraft, flags: number): Promise<FileHandle> {
  return open(partOf(own, draft), flags | constants.O_NOFOLLOW)
}

interface Appending {
  readonly source: AsyncIterable<Uint8Array>
  look(bytes: DraftBytes): Promise<void>
}

export async function appendPart(own: string, draft: WeightDraft, { source, look }: Appending): Promise<WeightDraft> {
  await using file = await openPart(own, draft, constants.O_RDWR)
  await file.truncate(draft.offsetBytes)
  let safe = draft
  let at = draft.offsetBytes
  const keep = async () => {
    if (at === safe.offsetBytes) return
    await file.datasync()
    safe = { ...draft, offsetBytes: at }
    await writeMark(own, safe)
  }
  const showUpTo = (): DraftBytes => ({ lengthBytes: at, read: (start, length) => readAll(file, start, length) })
  try {
    await look(showUpTo())
    for await (const chunk of source) {
      await writeAll(file, chunk, at)
      at += chunk.length
      await look(showUpTo())
      if (at - safe.offsetBytes >= SYNC_EVERY_BYTES) await keep()
    }
    await keep()
    return safe
  } catch (error) {
    // What had come before the connection broke, or the disk was full, is worth keeping: the sender goes on from there.
    await keep().catch(() => {})
    throw toRefusal(error)
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    // A nearly full disk takes a part of a write; only the next one fails.
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

async function readAll(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, start + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}

/** A full disk is a refusal; any other error of the disk is a defect and stays as it is. */
export function toRefusal(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  const message = 'the disk of this folder is full; make room, ask how far the upload is, and go on from there'
  return new ServiceError('payload_too_large', message, { details: { left_bytes: 0 }, cause: error })
}

/**
 * The hashes of weights that were put into a folder by us, in a small file beside them, so that they outlive this process and are
 * known to every service that uses the folder. A line counts only as long as its file has the size and time that it had then.
 */

/** Within a folder of models: what we keep there. ComfyUI lists nothing of it, since no name in it ends like a model's. */
const OWN_FOLDER = '.atelier'
const BOOK = 'hashes.json'
const MAX_BOOK_BYTES = 16 * 1024 * 1024

interface BookLine {
  readonly hash: string
  readonly sizeBytes: number
  readonly modifiedMs: number
}

type Book = Readonly<Record<string, BookLine>>

async function readBook(folder: string): Promise<Book> {
  try {
    const path = join(folder, OWN_FOLDER, BOOK)
    if ((await stat(path)).size > MAX_BOOK_BYTES) return {}
    const told: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof told === 'object' && told !== null ? (told as Book) : {}
  } catch {
    // A book that is not there, or cannot be read, knows no hash.
    return {}
  }
}

/** Reads each book once. null: not known, or the file has changed since. */
export function createHashFinder(): (folder: string, name: string) => Promise<string | null> {
  const books = new Map<string, Promise<Book>>()
  return async (folder, name) => {
    const opened = books.get(folder) ?? readBook(folder)
    books.set(folder, opened)
    const book = await opened
    const line = Object.hasOwn(book, name) ? book[name] : undefined
    if (typeof line?.hash !== 'string') return hashOfLink(join(folder, name))
    const found = await stat(join(folder, name)).catch(() => null)
    return found?.size === line.sizeBytes && found.mtimeMs === line.modifiedMs ? line.hash : null
  }
}

const KEPT_BY_HASH = /[\\/]([0-9a-f]{2})[\\/](\1[0-9a-f]{62})$/

/** Models of a release are links to files that the builder has checked and keeps under their hashes. */
async function hashOfLink(path: string): Promise<string | null> {
  const [, , sha256] = KEPT_BY_HASH.exec(await readlink(path).catch(() => '')) ?? []
  return sha256 === undefined ? null : `sha256:${sha256}`
}

/** `hash`: null takes the line out. Of two processes that write at once, one line may be lost: then that hash is not known. */
export async function writeInBook(folder: string, name: string, hash: string | null): Promise<void> {
  const { [name]: _before, ...others } = await readBook(folder)
  const found = hash === null ? null : await stat(join(folder, name))
  const line = found === null ? {} : { [name]: { hash, sizeBytes: found.size, modifiedMs: found.mtimeMs } }
  const path = join(folder, OWN_FOLDER, BOOK)
  if (found === null && Object.keys(others).length === 0) return rm(path, { force: true })
  const aside = `${path}.${randomUUID()}`
  await writeFileWhole(path, JSON.stringify({ ...others, ...line }), { mode: 0o600, isDurable: true, aside })
}
