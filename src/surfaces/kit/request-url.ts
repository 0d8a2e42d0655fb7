/**
 * Splits a raw query string into decoded pairs, strictly: a raw `;` and a bad `%` escape are reported, never guessed at.
 * Frameworks decode leniently and hide both.
 */
export type QueryPair = readonly [name: string, value: string]

/** null when the query cannot be read without guessing. */
export function readQuery(url: string): readonly QueryPair[] | null {
  const mark = url.indexOf('?')
  if (mark === -1) return []
  const raw = url.slice(mark + 1)
  if (raw.includes(';')) return null
  const pairs: QueryPair[] = []
  for (const part of raw.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const name = decode(equals === -1 ? part : part.slice(0, equals))
    const value = decode(equals === -1 ? '' : part.slice(equals + 1))
    if (name === null || value === null) return null
    pairs.push([name, value])
  }
  return pairs
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}
