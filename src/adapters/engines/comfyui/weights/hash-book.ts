/**
 * The hashes of weights that were put into a folder by us, in a small file beside them, so that they outlive this process and are
 * known to every service that uses the folder. A line counts only as long as its file has the size and time that it had then.
 */
import { randomUUID } from 'node:crypto'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../../../lib/files/write-file-whole.ts'

/** Within a folder of models: what we keep there. ComfyUI lists nothing of it, since no name in it ends like a model's. */
export const OWN_FOLDER = '.atelier'
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
    if (typeof line?.hash !== 'string') return null
    const found = await stat(join(folder, name)).catch(() => null)
    return found?.size === line.sizeBytes && found.mtimeMs === line.modifiedMs ? line.hash : null
  }
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
