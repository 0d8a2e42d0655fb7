/**
 * The sent journal as a file of the data folder: one short line per entry, appended with a plain write and never synced. What
 * was written outlives the process that wrote it. It need not outlive the machine: the file names the boot it belongs to, and
 * after the next boot its entries are not believed.
 */
import { closeSync, fchmodSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { SentJournal } from '../../domain/models/calls/sent-journal.ts'

export interface SentJournalFile extends SentJournal, Disposable {}

// Some 25,000 calls; a longer file is rewritten with the calls that are under way.
const MAX_BYTES = 1_000_000
const OWNER_ONLY = 0o600
const RECORDED = '+'
const RETRACTED = '-'

/** `bootId` names this boot of the machine; null where the machine cannot tell, and then no entry is ever believed. */
export function openSentJournalFile(path: string, bootId: string | null): SentJournalFile {
  const header = `boot ${bootId ?? 'unknown'}\n`
  const earlier = bootId === null ? null : readEntries(path, header)
  const underway = new Set<string>()
  const file = openSync(path, 'a', OWNER_ONLY)
  // A file that an earlier version made may have another mode.
  fchmodSync(file, OWNER_ONLY)
  let size = 0

  function append(sign: string, callId: string): void {
    if (size > MAX_BYTES) rewrite()
    size += writeSync(file, `${sign}${callId}\n`)
  }

  function rewrite(): void {
    const lines = [...underway].map((callId) => `${RECORDED}${callId}\n`)
    ftruncateSync(file, 0)
    size = writeSync(file, header + lines.join(''))
  }

  return {
    record({ id }) {
      append(RECORDED, id)
      underway.add(id)
    },
    retract({ id }) {
      underway.delete(id)
      try {
        append(RETRACTED, id)
      } catch {
        // The entry stays: after a crash the call counts as one that may have left, which costs its key and never money.
      }
    },
    forget: (callId) => void underway.delete(callId),
    mayHaveLeft: ({ ref }) => earlier === null || earlier.has(ref.id) || underway.has(ref.id),
    dropEarlier: rewrite,
    [Symbol.dispose]: () => closeSync(file),
  }
}

/** null: the file is missing or belongs to another boot. */
function readEntries(path: string, header: string): ReadonlySet<string> | null {
  const text = readIfThere(path)
  if (text === null || !text.startsWith(header)) return null
  const entries = new Set<string>()
  for (const line of text.slice(header.length).split('\n')) {
    if (line.startsWith(RECORDED)) entries.add(line.slice(1))
    if (line.startsWith(RETRACTED)) entries.delete(line.slice(1))
  }
  return entries
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Linux names every boot; other systems have nothing as reliable. */
export function readBootId(path = '/proc/sys/kernel/random/boot_id'): string | null {
  try {
    return readFileSync(path, 'latin1').trim() || null
  } catch {
    return null
  }
}
