/** Strong tags, and whether a caller already has what they stand for (RFC 9110, 13.1.2: weak comparison, lists and `*`). */
import { hash } from 'node:crypto'

/** For bytes without a digest of their own. */
export function toEtag(bytes: string | Uint8Array): string {
  return quoteDigest(hash('sha256', bytes))
}

/** A digest is a tag as soon as it stands in quotes. */
export function quoteDigest(digest: string): string {
  return `"${digest}"`
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((candidate) => {
    const tag = candidate.trim()
    return tag === '*' || tag.replace(/^W\//, '') === etag
  })
}
