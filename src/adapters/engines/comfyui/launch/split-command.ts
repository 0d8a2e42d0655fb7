/**
 * Splits a command line into words: blanks separate, quotes of either kind keep words together, a backslash outside single
 * quotes takes the next character literally. No shell is involved, so nothing else has a meaning.
 */
export class CommandError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CommandError'
  }
}

const PORT = '{port}'

/** Throws CommandError when the command cannot be run, or could not be told its port. */
export function splitCommand(text: string): readonly [string, ...string[]] {
  const words: string[] = []
  let word: string | null = null
  let quote: string | null = null
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    if (character === '\\' && quote !== "'") {
      at++
      if (at === text.length) throw new CommandError('the command ends in a backslash')
      word = (word ?? '') + text[at]
    } else if (quote !== null) {
      if (character === quote) quote = null
      else word = (word ?? '') + character
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + character
  }
  if (quote !== null) throw new CommandError(`the command has an unclosed ${quote}`)
  if (word !== null) words.push(word)
  const [program, ...rest] = words
  if (program === undefined || program === '') throw new CommandError('the command is empty')
  if (!words.some((each) => each.includes(PORT))) {
    throw new CommandError(`the command must say where its port goes: write ${PORT}`)
  }
  return [program, ...rest]
}

export function withPort(words: readonly string[], port: number): string[] {
  return words.map((word) => word.replaceAll(PORT, String(port)))
}
