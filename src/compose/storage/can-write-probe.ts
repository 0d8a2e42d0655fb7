/**
 * Finds out whether the data folder can be written, by writing a little where the store and the blobs write and removing it
 * again: the free space that the file system reports ignores quotas and reserved blocks. Nothing is synced, so a probe hardly
 * costs any disk access, and its answer is reused for a moment, since anybody may ask for readiness.
 */
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../../lib/log.ts'
import type { FileOps } from '../../adapters/blobs/fs/file-ops.ts'

interface RoomProbeOptions {
  readonly directories: readonly string[]
  /** Of the file. Always the same one where that is possible: then the next process removes the file of one that died. */
  readonly name: string
  readonly files: FileOps
  readonly log: Log
  /** In milliseconds; never goes back. */
  readonly now: () => number
}

/** False when nothing can be stored; never rejects. */
export type HasRoom = () => Promise<boolean>

// The room that small writes need together; a disk with less counts as full.
const PROBE_BYTES = 1024 * 1024
const FRESH_MS = 1_000

export function createRoomProbe({ directories, name, files, log, now }: RoomProbeOptions): HasRoom {
  let known = { hasRoom: true, at: Number.NEGATIVE_INFINITY }
  let asking: Promise<boolean> | null = null

  async function ask(): Promise<boolean> {
    const faults = await Promise.all(directories.map((directory) => tryToWrite(join(directory, name), files)))
    const fault = faults.find((one) => one !== null) ?? null
    const hasRoom = fault === null
    if (hasRoom !== known.hasRoom) {
      if (hasRoom) log.info({}, 'the data folder can be written again')
      else log.error({ err: fault }, 'the data folder cannot be written: the service is not ready')
    }
    known = { hasRoom, at: now() }
    asking = null
    return hasRoom
  }

  return async () => {
    if (now() - known.at < FRESH_MS) return known.hasRoom
    asking ??= ask()
    return asking
  }
}

/** Whether the file systems of these folders report so many bytes as free. One that cannot say counts as having them. */
export async function haveFree(directories: readonly string[], bytes: number): Promise<boolean> {
  const free = await Promise.all(
    directories.map((directory) =>
      statfs(directory).then(
        ({ bavail, bsize }) => bavail * bsize,
        () => Number.POSITIVE_INFINITY,
      ),
    ),
  )
  return Math.min(...free) >= bytes
}

/** What went wrong, or null. Leaves nothing behind. */
async function tryToWrite(path: string, files: FileOps): Promise<unknown> {
  const remove = () => files.unlink(path).catch(() => {})
  let fd: number | null = null
  try {
    await remove()
    fd = await files.create(path)
    await files.write(fd, new Uint8Array(PROBE_BYTES), { length: PROBE_BYTES, position: 0 })
    return null
  } catch (error) {
    return error
  } finally {
    if (fd !== null) {
      await files.close(fd)
      await remove()
    }
  }
}
