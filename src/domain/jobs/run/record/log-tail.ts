/**
 * What a run prints, kept as a bounded tail. A value like any other: appending gives a new tail that shares the old pieces,
 * so the fold over engine events stays pure and a line costs the same whatever came before it.
 */
import { keepTail } from '../../../../../lib/text/cut-text.ts'

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
