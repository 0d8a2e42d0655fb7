/**
 * Files of this machine below folders that the operator has named. A path counts by where it really leads: links inside a folder
 * may point to each other, but never out of it, also not when somebody exchanges a folder for a link while the file is opened.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { basename, isAbsolute, normalize, sep } from 'node:path'
import type { HostFiles } from '../../../domain/assets/create/asset-from-path.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { hasCode } from './file-ops.ts'

const MAX_PATH_LENGTH = 4096
// A pipe without a writer would hold the open up for ever.
const READ_ONLY = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Rejects when a folder does not exist. */
export async function openHostFiles(folders: readonly string[]): Promise<HostFiles> {
  const named = folders.map((folder) => normalize(folder))
  const real = await Promise.all(folders.map((folder) => realpath(folder)))
  const isNamed = (path: string) => [...named, ...real].some((folder) => isBelow(folder, path))
  const isInside = (path: string) => real.some((folder) => isBelow(folder, path))

  /** Where an open file really lies; where the system does not tell, the path is resolved once more. */
  async function mustLieInside(handle: FileHandle, path: string): Promise<void> {
    const lies = await realpath(`/proc/self/fd/${handle.fd}`).catch(() => realpath(path))
    if (!isInside(lies)) throw outside()
    if (!(await handle.stat()).isFile()) throw missing()
  }

  return {
    async open(given) {
      const path = normalize(given)
      const isPossible = isAbsolute(given) && given.length <= MAX_PATH_LENGTH && !given.includes('\0')
      // Refused before the disk is read, so that callers cannot find out which other files exist.
      if (!isPossible || !isNamed(path)) throw outside()
      const target = await realpath(path).catch(unlessMissing)
      if (!isInside(target)) throw outside()
      const handle = await open(target, READ_ONLY).catch(unlessMissing)
      try {
        await mustLieInside(handle, target)
      } catch (error) {
        await handle.close()
        throw error
      }
      return {
        name: basename(path),
        source: handle.createReadStream({ autoClose: false }),
        [Symbol.asyncDispose]: () => handle.close(),
      }
    },
  }
}

function isBelow(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

function unlessMissing(error: unknown): never {
  throw hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENXIO', 'EISDIR', 'ENAMETOOLONG') ? missing() : error
}

function outside(): ServiceError {
  return invalidField('path', 'must be absolute and lie in one of the folders that importDirs names')
}

function missing(): ServiceError {
  return new ServiceError('blob_not_found', 'there is no readable file under this path')
}
