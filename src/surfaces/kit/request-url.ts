/** Reading the target of a request: its path, its raw query, and the query's pairs. */

/** Without the query. */
export function pathOf(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}

/** As it was sent, without the mark. */
export function queryOf(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : url.slice(mark + 1)
}

export type QueryPair = readonly [name: string, value: string]

/**
 * The decoded pairs of a query, read strictly where frameworks decode leniently: a raw `;` and a bad `%` escape are reported,
 * never guessed at. null when the query cannot be read without guessing.
 */
export function readQuery(url: string): readonly QueryPair[] | null {
  const raw = queryOf(url)
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
