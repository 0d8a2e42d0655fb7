/**
 * The sent journal as a file of the data folder: one short line per entry, appended with a plain write and never synced. What
 * was written outlives the process that wrote it. It need not outlive the machine: the file names the boot it belongs to, and
 * after the next boot its entries are not believed. Calls that were let in together are written together.
 */
import { closeSync, fchmodSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { SentJournal } from '../../domain/models/calls/live-calls.ts'

export interface SentJournalFile extends SentJournal, Disposable {}

// Some 25,000 calls; a longer file is rewritten with the calls that are under way.
const MAX_BYTES = 1_000_000
// About a hundred calls: more are not let in together.
const MAX_GATHERED = 4096
const OWNER_ONLY = 0o600
const RECORDED = '+'
const RETRACTED = '-'

/** Entries that share one write. */
interface Gathered {
  text: string
  failure: { readonly cause: unknown } | null
  /** Rejects when they are not in the file. */
  written: Promise<void> | null
}

/** `bootId` names this boot of the machine; null where the machine cannot tell, and then no entry is ever believed. */
export function openSentJournalFile(path: string, bootId: string | null): SentJournalFile {
  const header = `boot ${bootId ?? 'unknown'}\n`
  const earlier = bootId === null ? null : readEntries(path, header)
  const underway = new Set<string>()
  const file = openSync(path, 'a', OWNER_ONLY)
  // A file that an earlier version made may have another mode.
  fchmodSync(file, OWNER_ONLY)
  let size = 0

  let isTorn = false
  let gathered: Gathered | null = null

  function append(text: string): void {
    if (size > MAX_BYTES) rewrite()
    const bytes = Buffer.from(isTorn ? `\n${text}` : text, 'latin1')
    isTorn = true
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    isTorn = false
    size += bytes.length
  }

  /** Never throws: whoever waits for one of these entries is told. */
  function write(entries: Gathered): void {
    gathered = null
    try {
      append(entries.text)
    } catch (error) {
      entries.failure = { cause: error }
    }
  }

  async function settle(entries: Gathered): Promise<void> {
    // When all that are ready now have said that they begin.
    await null
    if (gathered === entries) write(entries)
    if (entries.failure !== null) throw entries.failure.cause
  }

  function gather(): Gathered {
    const entries: Gathered = { text: '', failure: null, written: null }
    gathered = entries
    entries.written = settle(entries)
    return entries
  }

  function rewrite(): void {
    const lines = [...underway].map((callId) => `${RECORDED}${callId}\n`)
    ftruncateSync(file, 0)
    size = writeSync(file, header + lines.join(''))
    isTorn = false
  }

  return {
    record({ id }) {
      const entries = gathered ?? gather()
      entries.text += `${RECORDED}${id}\n`
      underway.add(id)
      if (entries.text.length > MAX_GATHERED) write(entries)
      return entries.written ?? undefined
    },
    retract({ id }) {
      underway.delete(id)
      if (gathered !== null) write(gathered)
      try {
        append(`${RETRACTED}${id}\n`)
      } catch {
        // The entry stays: after a crash the call counts as one that may have left, which costs its key and never money.
      }
    },
    forget: (callId) => void underway.delete(callId),
    mayHaveLeft: ({ ref }) => earlier === null || earlier.has(ref.id) || underway.has(ref.id),
    dropEarlier: rewrite,
    [Symbol.dispose]() {
      if (gathered !== null) write(gathered)
      closeSync(file)
    },
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
