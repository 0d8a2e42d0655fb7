/** How long to wait before the next try: 1, 2, 4 … 30 s, each with up to a fifth more or less, so that a thousand pages do not come back at once. */
const FIRST_MS = 1000
const MOST_MS = 30_000
const JITTER = 0.2

export function backoffMs(failures: number, random: number): number {
  const plain = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures, 10))
  return Math.round(plain * (1 + (random * 2 - 1) * JITTER))
}
