/** Pieces of work with their times, as lines with bars under a common scale. */
import { toPrintable } from '../terminal.ts'

export interface Piece {
  readonly name: string
  /** How deep it is indented. */
  readonly depth: number
  readonly startMs: number
  /** null: it goes on. */
  readonly endMs: number | null
  /** What is said behind the bar; '' for nothing. */
  readonly note: string
}

const BAR_WIDTH = 40
const MAX_NAME_WIDTH = 34

/** `nowMs`: until when whatever goes on is drawn. */
export function toWaterfall(pieces: readonly Piece[], nowMs: number): string[] {
  const startMs = Math.min(...pieces.map((piece) => piece.startMs))
  const endMs = Math.max(startMs + 1, ...pieces.map((piece) => piece.endMs ?? nowMs))
  const names = pieces.map(({ name, depth }) => cut(`${'  '.repeat(depth)}${toPrintable(name)}`, MAX_NAME_WIDTH))
  const nameWidth = Math.max(...names.map((name) => name.length))
  const toColumn = (atMs: number) => Math.round(((atMs - startMs) / (endMs - startMs)) * BAR_WIDTH)
  return pieces.map((piece, index) => {
    const until = piece.endMs ?? nowMs
    const from = Math.min(BAR_WIDTH - 1, toColumn(piece.startMs))
    const length = Math.max(1, toColumn(until) - from)
    const bar = `${' '.repeat(from)}${'█'.repeat(length)}`.padEnd(BAR_WIDTH)
    const time = `${toSeconds(until - piece.startMs)}${piece.endMs === null ? '…' : ' '}`
    return `${names[index]!.padEnd(nameWidth)}  ${time.padStart(10)}  ${bar}  ${toPrintable(piece.note)}`.trimEnd()
  })
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}

export function toSeconds(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : `${(ms / 1000).toFixed(ms < 100_000 ? 2 : 0)} s`
}
