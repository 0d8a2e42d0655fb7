/**
 * Readers of JSON as providers have them: of two members with one name one takes the first, another the last, and a third
 * compares names without case. It shares nothing with our own readers.
 */
export interface Reader {
  readonly keeps: 'first' | 'last'
  readonly ignoresCase: boolean
}

export const READERS: readonly Reader[] = [
  { keeps: 'first', ignoresCase: false },
  { keeps: 'last', ignoresCase: false },
  { keeps: 'first', ignoresCase: true },
  { keeps: 'last', ignoresCase: true },
]

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/** `known`: the names that the reader looks for; without case, any variant counts as one of them. */
export function readLeniently(text: string, { keeps, ignoresCase }: Reader, known: readonly string[]): unknown {
  const tokens = text.match(TOKEN) ?? []
  let at = 0
  const nameOf = (name: string) =>
    (ignoresCase ? known.find((one) => one.toLowerCase() === name.toLowerCase()) : undefined) ?? name
  const value = (): unknown => {
    const token = tokens[at++]
    if (token === '[') return list()
    return token === '{' ? object() : JSON.parse(token)
  }
  const list = (): unknown[] => {
    const items: unknown[] = []
    while (tokens[at] !== ']') {
      items.push(value())
      if (tokens[at] === ',') at++
    }
    at++
    return items
  }
  const object = (): object => {
    const members = new Map<string, unknown>()
    while (tokens[at] !== '}') {
      const name = nameOf(JSON.parse(tokens[at]) as string)
      at += 2
      const member = value()
      if (keeps === 'last' || !members.has(name)) members.set(name, member)
      if (tokens[at] === ',') at++
    }
    at++
    return Object.fromEntries(members)
  }
  return value()
}
