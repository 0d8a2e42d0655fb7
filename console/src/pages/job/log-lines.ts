/** Lines in the order of their numbers, each once, from pages and from the stream in whatever order they come. Pure. */
import type { LogLine } from '../../api/job-detail.ts'

/** The service keeps no more of a log than this, and a tab must not either. */
const MAX_LINES = 100_000

export function addLines(known: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  if (more.length === 0) return known
  const last = known.at(-1)?.n ?? Number.NEGATIVE_INFINITY
  const isBehind = more.every((line, index) => line.n > (index === 0 ? last : more[index - 1].n))
  if (isBehind) return [...known, ...more].slice(-MAX_LINES)
  const byNumber = new Map([...known, ...more].map((line) => [line.n, line]))
  return [...byNumber.values()].toSorted((a, b) => a.n - b.n).slice(-MAX_LINES)
}
