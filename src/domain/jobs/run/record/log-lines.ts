/**
 * Which node printed which lines of a run's log, and when. Lines are counted from the beginning of the run, also those that a bounded
 * log no longer has.
 */
import { keepTail } from '../../../../../lib/text/cut-text.ts'
import type { JobLog } from '../../job.ts'

export interface LogLine {
  /** From 0. */
  readonly n: number
  /** null: not known. */
  readonly at: Date | null
  readonly nodeId: string | null
  readonly text: string
}

/** From this line on; until the next mark. */
type Mark = readonly [line: number, atMs: number, nodeId: string | null]

/** As it is stored beside the text of a log. */
interface StoredMarks {
  /** Lines that were printed in all. */
  readonly total: number
  readonly marks: readonly Mark[]
}

export interface LogMarks {
  /** `text` is what is appended to the log. */
  note(text: string, atMs: number, nodeId: string | null): void
  /** null: nothing was printed. */
  finish(): string | null
}

const MAX_MARKS = 5000
// Lines of one node within this time share a mark.
const SAME_TIME_MS = 100

export function createLogMarks(): LogMarks {
  const marks: Mark[] = []
  let lines = 0
  return {
    note(text, atMs, nodeId) {
      const last = marks.at(-1)
      if (last === undefined || last[2] !== nodeId || atMs - last[1] >= SAME_TIME_MS) marks.push([lines, atMs, nodeId])
      // Dropped in halves, so that a line costs the same whatever came before it.
      if (marks.length > 2 * MAX_MARKS) marks.splice(0, MAX_MARKS)
      lines += countLines(text)
    },
    finish: () => (marks.length === 0 ? null : writeMarks({ total: lines, marks: marks.slice(-MAX_MARKS) })),
  }
}

function countLines(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1
  return count
}

export function writeMarks({ total, marks }: StoredMarks): string {
  return JSON.stringify({ total, marks })
}

export function readMarks(text: string): StoredMarks {
  return JSON.parse(text) as StoredMarks
}

/** The log with one line more, which no node has printed. `log` left out: nothing was printed. */
export function withLine(log: JobLog | undefined, line: string, at: Date): JobLog {
  const { text, marks = null, ...rest } = log ?? { text: '', truncated: false, capturedAt: at, complete: true }
  const end = text === '' || text.endsWith('\n') ? '' : '\n'
  const { total, marks: known } = marks === null ? { total: countLines(text), marks: [] } : readMarks(marks)
  const begins = total + end.length
  const stored = { total: begins + 1, marks: [...known, [begins, at.getTime(), null] as const] }
  return { ...rest, text: `${text}${end}${line}\n`, marks: writeMarks(stored) }
}

/** The lines of a log that is kept. */
export function toLogLines({ text, truncated, marks = null }: JobLog): LogLine[] {
  const texts = text.split('\n')
  if (texts.at(-1) === '') texts.pop()
  const stored = marks === null ? { total: 0, marks: [] } : readMarks(marks)
  const first = truncated ? Math.max(0, stored.total - texts.length) : 0
  let at = 0
  return texts.map((line, index) => {
    const n = first + index
    while (at + 1 < stored.marks.length && (stored.marks[at + 1]?.[0] ?? 0) <= n) at += 1
    const mark = stored.marks[at]
    const isKnown = mark !== undefined && mark[0] <= n
    return { n, at: isKnown ? new Date(mark[1]) : null, nodeId: isKnown ? mark[2] : null, text: line }
  })
}

const LOG_MAX_BYTES = 256 * 1024

interface Piece {
  readonly text: string
  readonly older: Piece | null
}

export interface LogTail {
  readonly newest: Piece | null
  readonly pieces: number
  readonly bytes: number
  /** The beginning was dropped. */
  readonly truncated: boolean
}

/**
 * What a run prints, kept as a bounded tail. A value like any other: appending gives a new tail that shares the old pieces,
 * so the fold over engine events stays pure and a line costs the same whatever came before it.
 */
export const EMPTY_LOG: LogTail = { newest: null, pieces: 0, bytes: 0, truncated: false }

// Compacting at twice the bound (or after many small pieces) makes the cost of an append constant on average.
const MAX_PIECES = 1024

export function appendLog(tail: LogTail, text: string, maxBytes = LOG_MAX_BYTES): LogTail {
  if (text === '') return tail
  const kept = keepTail(text, maxBytes)
  // A text that did not fit by itself leaves no room for what came before it.
  const isCut = kept.length < text.length
  const bytes = (isCut ? 0 : tail.bytes) + Buffer.byteLength(kept)
  const grown: LogTail = {
    newest: { text: kept, older: isCut ? null : tail.newest },
    pieces: tail.pieces + 1,
    bytes,
    truncated: tail.truncated || isCut,
  }
  return bytes > 2 * maxBytes || grown.pieces > MAX_PIECES ? compact(grown, maxBytes) : grown
}

/** The text to store: at most `maxBytes` of UTF-8, cut between characters. */
export function readLog(tail: LogTail, maxBytes = LOG_MAX_BYTES): { text: string; truncated: boolean } {
  const pieces: string[] = []
  for (let piece = tail.newest; piece !== null; piece = piece.older) pieces.push(piece.text)
  const whole = pieces.reverse().join('')
  const text = keepTail(whole, maxBytes)
  return { text, truncated: tail.truncated || text.length < whole.length }
}

function compact(tail: LogTail, maxBytes: number): LogTail {
  const { text, truncated } = readLog(tail, maxBytes)
  return { newest: { text, older: null }, pieces: 1, bytes: Buffer.byteLength(text), truncated }
}
