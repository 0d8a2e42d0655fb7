/**
 * How long to wait before the next try: 1, 2, 4 … 30 s, each with up to a fifth more or less, so that a thousand pages do not come back
 * at once. A service that is not there is not helped by patience: it is asked at least every few seconds, so that a page is right soon
 * after its return.
 */
const FIRST_MS = 1000
const MOST_MS = 30_000
const MOST_AWAY_MS = 3000
const JITTER = 0.2
/** What a proxy says while the service behind it is away. */
const AWAY: readonly (number | null)[] = [null, 502, 503, 504]

interface Failure {
  /** null: no answer came. */
  readonly status: number | null
  readonly retryAfterSeconds: number | null
}

/** `error`: null: a connection broke off. */
export function retryMs(error: Failure | null, failures: number, random = Math.random()): number {
  const most = AWAY.includes(error?.status ?? null) ? MOST_AWAY_MS : MOST_MS
  const plain = Math.min(most, FIRST_MS * 2 ** Math.min(failures, 10))
  const waitMs = Math.round(plain * (1 + (random * 2 - 1) * JITTER))
  return Math.max(waitMs, (error?.retryAfterSeconds ?? 0) * 1000)
}
