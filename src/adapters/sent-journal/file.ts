/**
 * Marks in a file of the data folder, one short line each, appended with a plain write and never synced. What was written
 * outlives the process that wrote it; it need not outlive the machine, because the file names the start of the machine that
 * it belongs to, and after another one it vouches for nothing.
 */
import { closeSync, fchmodSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { SendMarks } from '../../domain/models/calls/sent-journal.ts'

export interface SendMarkFile extends SendMarks, Disposable {}

// Some 25,000 calls; then only those are kept that are under way.
const MAX_BYTES = 1_000_000
const OWNER_ONLY = 0o600
const SET = '+'
const RETRACTED = '-'

/** `bootId` names this start of the machine; null where the machine cannot tell, and then no mark is ever believed. */
export function openSendMarkFile(path: string, bootId: string | null): SendMarkFile {
  const header = `boot ${bootId ?? 'unknown'}\n`
  const left = bootId === null ? null : readMarks(path, header)
  const under = new Set<string>()
  const file = openSync(path, 'a', OWNER_ONLY)
  // It may be there already, from a version that asked for no mode.
  fchmodSync(file, OWNER_ONLY)
  let size = 0

  function append(sign: string, callId: string): void {
    if (size > MAX_BYTES) restart()
    size += writeSync(file, `${sign}${callId}\n`)
  }

  function restart(): void {
    const lines = [...under].map((callId) => `${SET}${callId}\n`)
    ftruncateSync(file, 0)
    size = writeSync(file, header + lines.join(''))
  }

  return {
    set(callId) {
      append(SET, callId)
      under.add(callId)
    },
    retract(callId) {
      under.delete(callId)
      try {
        append(RETRACTED, callId)
      } catch {
        // The mark stays: after a crash the call counts as one that may have left, which costs a key and never money.
      }
    },
    forget: (callId) => void under.delete(callId),
    mayHaveLeft: (callId) => left === null || left.has(callId),
    begin: restart,
    [Symbol.dispose]: () => closeSync(file),
  }
}

/** null: the file says nothing about calls of this start of the machine. */
function readMarks(path: string, header: string): ReadonlySet<string> | null {
  const text = readIfThere(path)
  if (text === null || !text.startsWith(header)) return null
  const marks = new Set<string>()
  for (const line of text.slice(header.length).split('\n')) {
    if (line.startsWith(SET)) marks.add(line.slice(1))
    if (line.startsWith(RETRACTED)) marks.delete(line.slice(1))
  }
  return marks
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Linux names every start of the machine; elsewhere nothing does so reliably. */
export function readBootId(path = '/proc/sys/kernel/random/boot_id'): string | null {
  try {
    return readFileSync(path, 'latin1').trim() || null
  } catch {
    return null
  }
}
