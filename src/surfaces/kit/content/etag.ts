/** Strong tags over bytes, and whether a caller already has them (RFC 9110, 13.1.2: weak comparison, lists and `*`). */
import { hash } from 'node:crypto'

/** Quoted SHA-256. */
export function toEtag(bytes: string | Uint8Array): string {
  return `"${hash('sha256', bytes)}"`
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
