/**
 * How many connections the listener accepts. Each needs a file descriptor, and clients that take all descriptors of the process
 * would leave none for stored files, so that running jobs could not write their outputs. A share is therefore reserved.
 */
import { readFileSync } from 'node:fs'

const MAX_CONNECTIONS = 20_000
// For databases, threads, modules and outputs.
const RESERVED_FILES = 128
// An upload and a download hold a file beside their connection; most connections do not.
const SHARE = 0.75
const MIN_CONNECTIONS = 16

export function toConnectionLimit(openFiles: number | null): number {
  if (openFiles === null) return MAX_CONNECTIONS
  const room = Math.floor((openFiles - RESERVED_FILES) * SHARE)
  return Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, room))
}

/** null where the system does not say. */
export function readOpenFileLimit(): number | null {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return limit === undefined ? null : Number(limit)
  } catch {
    return null
  }
}
