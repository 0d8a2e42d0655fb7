/**
 * Usage events into a file, one JSON text a line. The file is its own cursor: what comes next is what follows its last whole line, and half
 * a line, left by whoever was killed while writing it, is cut off first. So each event is in it once, whatever happens in between.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { tryLock } from '../../../lib/files/file-lock.ts'
import { CommandError, EXIT } from '../terminal.ts'

export interface EventsWire {
  readonly events: readonly { readonly sequence: string }[]
  readonly next: number
  readonly last: boolean
}

const NEWLINE = 10
// Nothing else is ever cut off a file.
const BEGIN = '{"specversion":"1.0",'
const TAIL_BYTES = 65_536

/** How many were added. `page` is asked for what comes after a number. */
export async function exportEvents(path: string, page: (after: number) => Promise<EventsWire>): Promise<number> {
  using lock = tryLock(`${path}.lock`)
  if (lock === null) throw new CommandError(`another export writes to ${path}; wait for its end`, EXIT.failed)
  const file = openSync(path, 'a+')
  try {
    let after = findCursor(file, path)
    for (let added = 0; ; ) {
      const { events, next, last } = await page(after)
      if (events.length > 0) {
        writeAll(file, Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join('')))
        fsyncSync(file)
      }
      added += events.length
      after = next
      if (last) return added
    }
  } finally {
    closeSync(file)
  }
}

function writeAll(file: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
}

/** The number of the last event in the file, which ends behind it from now on. */
function findCursor(file: number, path: string): number {
  const size = statSync(path).size
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
  readSync(file, tail, 0, tail.length, size - tail.length)
  const end = tail.lastIndexOf(NEWLINE)
  const half = tail.subarray(end + 1).toString('utf8')
  const isOurs = (end !== -1 || size <= TAIL_BYTES) && (half.startsWith(BEGIN) || BEGIN.startsWith(half))
  const line = tail.subarray(end < 1 ? 0 : tail.lastIndexOf(NEWLINE, end - 1) + 1, Math.max(0, end)).toString('utf8')
  const sequence = line === '' ? 0 : readSequence(line)
  if (!isOurs || sequence === null)
    throw new CommandError(`${path} does not end with a usage event; export to a file of its own`, EXIT.usage)
  ftruncateSync(file, size - tail.length + end + 1)
  return sequence
}

function readSequence(line: string): number | null {
  try {
    const { sequence } = JSON.parse(line) as { readonly sequence?: unknown }
    return typeof sequence === 'string' && /^\d{1,15}$/.test(sequence) ? Number(sequence) : null
  } catch {
    return null
  }
}
