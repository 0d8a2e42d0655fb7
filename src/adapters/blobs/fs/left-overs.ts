/**
 * Unfinished files. A process that has the folder to itself removes all of them at its start: they are from a crash. Where several
 * processes use the folder, each writes under its own name, and only files of processes that are gone, or that are too old to be
 * still in use, are removed.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../../../lib/log.ts'
import type { FolderUsers } from '../folder-users.ts'
import type { FileOps } from './file-ops.ts'

interface LeftOverDeps {
  readonly files: FileOps
  /** null: this process has the folder alone. */
  readonly users: FolderUsers | null
  readonly now: () => number
  readonly log: Log
}

// No upload takes as long: the longest that a connection may be silent is minutes.
const ABANDONED_MS = 24 * 3_600_000

/** The name of an unfinished file begins with the name of its process, which has no dot. */
export function toTemporaryName(id: string, users: FolderUsers | null): string {
  return users === null ? id : `${users.own}.${id}`
}

export async function removeLeftOvers(temporary: string, deps: LeftOverDeps): Promise<void> {
  const { files, log } = deps
  let count = 0
  for (const name of await readdir(temporary)) {
    const path = join(temporary, name)
    try {
      if (!(await isLeftOver(path, name, deps))) continue
      await files.unlink(path)
      count++
    } catch (error) {
      // Nothing of ours, such as a folder, or another process was faster; it must not keep the service from starting.
      log.warn({ err: error, name }, 'a foreign entry among the unfinished files could not be removed')
    }
  }
  if (count > 0) log.info({ count }, 'removed unfinished files of an earlier run')
}

async function isLeftOver(path: string, name: string, { users, now }: LeftOverDeps): Promise<boolean> {
  if (users === null) return true
  const [owner, ...rest] = name.split('.')
  if (rest.length > 0 && owner !== undefined && !users.live.has(owner)) return true
  return now() - (await stat(path)).mtimeMs > ABANDONED_MS
}
