/**
 * A folder of the user's whose files anybody may read. What an address names is looked up by its segments, one by one: none may begin
 * with a dot or lead anywhere else, and a link that leads out of the folder is not followed. What is not a plain file is not there.
 */
import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'

export interface ServedFile {
  /** Absolute, without links. */
  readonly path: string
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedMs: number
}

export interface ServedFolder {
  readonly directory: string
  /** `address`: what follows the folder's own address, without a leading slash and as it was sent. */
  find(address: string): Promise<ServedFile | null>
}

const MAX_ADDRESS_LENGTH = 1024
// A dot at the beginning hides files and names parents; the others mean something to one system or another.
const UNSAFE_SEGMENT = /^$|^\.|[\\:\p{Cc}]/u
const ABSENT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENAMETOOLONG', 'EINVAL']

export function createServedFolder(directory: string): ServedFolder {
  return {
    directory,
    async find(address) {
      const segments = readSegments(address)
      if (segments === null) return null
      try {
        const root = await realpath(directory)
        const found = await realpath(path.join(root, ...segments))
        if (!found.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) return null
        const facts = await stat(found)
        if (!facts.isFile()) return null
        return { path: found, name: path.basename(found), sizeBytes: facts.size, modifiedMs: facts.mtimeMs }
      } catch (error) {
        if (ABSENT.includes((error as NodeJS.ErrnoException).code ?? '')) return null
        throw error
      }
    },
  }
}

/** Of several folders the first that has the file. */
export async function findInAny(folders: readonly ServedFolder[], address: string): Promise<ServedFile | null> {
  for (const folder of folders) {
    const found = await folder.find(address)
    if (found !== null) return found
  }
  return null
}

function readSegments(address: string): readonly string[] | null {
  if (address.length > MAX_ADDRESS_LENGTH) return null
  try {
    const segments = decodeURIComponent(address).split('/')
    return segments.some((segment) => UNSAFE_SEGMENT.test(segment)) ? null : segments
  } catch {
    return null
  }
}
