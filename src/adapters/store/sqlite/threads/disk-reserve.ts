/**
 * Room on the disk that is set aside for the writes that must go on when there is none left: cancels and deletes, which make
 * room, and the ends of what is under way, which somebody was promised. It is given up when such a write finds the disk full,
 * and set aside again as soon as the disk has room for it.
 */
import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'

export interface DiskReserve {
  readonly isSpent: boolean
  /** False when there was nothing left to give up. */
  spend(): boolean
  /** To be called from time to time. */
  restore(): void
}

// A cancel writes some ten pages to the WAL, which starts over from its beginning after a checkpoint.
const RESERVE_BYTES = 4 * 1024 * 1024
const PAGE_BYTES = 4096

interface DiskReserveOptions {
  readonly path: string
  readonly database: DatabaseSync
  readonly maxPages: number | null
}

export function openDiskReserve({ path, database, maxPages }: DiskReserveOptions): DiskReserve {
  let isSpent = !isThere(path) && !setAside(path)

  function limitPages(extraBytes: number): void {
    if (maxPages !== null) database.exec(`PRAGMA max_page_count = ${maxPages + extraBytes / PAGE_BYTES}`)
  }

  return {
    get isSpent() {
      return isSpent
    },
    spend() {
      if (isSpent) return false
      isSpent = true
      rmSync(path, { force: true })
      limitPages(RESERVE_BYTES)
      return true
    },
    restore() {
      if (!isSpent || !hasRoom(path)) return
      limitPages(0)
      isSpent = !setAside(path)
    },
  }
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.size === RESERVE_BYTES
}

/** With room to spare: a reserve that fills the disk by itself would be given up again at once. */
function hasRoom(path: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(path))
  return bavail * bsize > 4 * RESERVE_BYTES
}

function setAside(path: string): boolean {
  try {
    const descriptor = openSync(path, 'w', 0o600)
    try {
      // Random, because some file systems take no room for bytes that are all the same.
      const bytes = randomFillSync(Buffer.allocUnsafe(RESERVE_BYTES))
      for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done)
    } finally {
      closeSync(descriptor)
    }
    return true
  } catch {
    // The disk is full: the service goes on without a reserve until there is room for one.
    rmSync(path, { force: true })
    return false
  }
}
