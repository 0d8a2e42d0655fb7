/**
 * What an engine printed lately, for whoever looks after it: the newest lines, each bounded. Credentials of runs must be taken out of
 * a text before it comes here; nothing of this is stored.
 */
import type { Clock } from '../../../../lib/clock.ts'

interface EngineLine {
  /** Rises by one from line to line, from 1. */
  readonly n: number
  readonly at: Date
  readonly text: string
}

export interface EngineLog {
  /** Another one after every start: numbers of lines begin anew. */
  readonly beganAt: Date
  /** Takes a piece of what was printed: a line, several, or a part of one. */
  hear(piece: string): void
  /** The newest, in their order. */
  lines(): readonly EngineLine[]
}

const MAX_LINES = 1000
const MAX_LINE_LENGTH = 2000

export function createEngineLog(clock: Clock): EngineLog {
  const lines: EngineLine[] = []
  let rest = ''
  let count = 0

  function keep(text: string): void {
    count += 1
    lines.push({ n: count, at: clock.now(), text: text.trimEnd() })
    if (lines.length > MAX_LINES) lines.shift()
  }

  return {
    beganAt: clock.now(),
    hear(piece) {
      // A bar of progress is drawn again and again over itself.
      const parts = piece.split(/\r?\n|\r/)
      for (const [index, part] of parts.entries()) {
        if (rest.length < MAX_LINE_LENGTH) rest += part.slice(0, MAX_LINE_LENGTH - rest.length)
        if (index === parts.length - 1) break
        if (rest !== '') keep(rest)
        rest = ''
      }
    },
    lines: () => lines,
  }
}
