/** How long a partner asks us to wait: seconds or a date (RFC 9110, 10.2.3), never longer than is sensible. */
export const RETRY_AFTER_MAX_MS = 150_000

/** null when the header is absent or says nothing usable. */
export function readRetryAfterMs(header: string | string[] | undefined, nowMs: number): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined || text === '') return null
  // Some runtimes read a date into nearly every text; the real ones begin with the name of a day.
  const dateMs = /^[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : dateMs - nowMs
  if (Number.isNaN(ms)) return null
  return Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS)
}
