/** A command line of bash as far as it was typed, and words written so that bash reads them as they are. */

interface TypedLine {
  /** As the command would get them. The last one is the one that is being typed, perhaps empty. */
  readonly words: readonly string[]
  /** The last one as it stands there. */
  readonly raw: string
  /** The quote that is still open in it. */
  readonly quote: '"' | "'" | null
}

export function splitLine(line: string): TypedLine {
  const words: string[] = []
  let word = ''
  let raw = ''
  let quote: TypedLine['quote'] = null
  for (let at = 0; at < line.length; at++) {
    const character = line[at]
    if (quote === null && /\s/.test(character)) {
      if (raw !== '') words.push(word)
      word = ''
      raw = ''
      continue
    }
    raw += character
    if (character === '\\' && quote !== "'") {
      at += 1
      raw += line[at] ?? ''
      word += line[at] ?? ''
    } else if (character === quote) quote = null
    else if (quote === null && (character === '"' || character === "'")) quote = character
    else word += character
  }
  return { words: [...words, word], raw, quote }
}

/**
 * What is put in the place of the part behind the last of `breaks`, where bash thinks that the word begins. null: the word cannot stand
 * there without being read as something else.
 */
export function toInserted(word: string, { raw, quote }: TypedLine, breaks: string): string | null {
  if (quote !== null) {
    const isSafe = quote === "'" ? !word.includes("'") : !/["$`\\!]/.test(word)
    const at = raw.lastIndexOf(quote)
    const before = splitLine(raw.slice(0, at)).words.at(-1) ?? ''
    return isSafe ? word.slice(before.length) : null
  }
  const escaped = word.replaceAll(/[^\w@%+=:,./-]/gu, (character) => `\\${character}`)
  const start =
    Math.max(-1, ...[...breaks].filter((each) => /[=:@]/.test(each)).map((each) => raw.lastIndexOf(each))) + 1
  return escaped.startsWith(raw.slice(0, start)) ? escaped.slice(start) : null
}
