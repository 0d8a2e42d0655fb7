/** Breaks text into lines that fit a width: at spaces where it can, inside a word where it must. */
import { charactersOf, type Letters, widthOf } from './letter-shapes.ts'

type Word = readonly string[]

/** Cuts a word into pieces that fit; a single letter always does. */
function* pieces(word: Word, { letters, maxWidth }: WrapOptions): Generator<Word> {
  let piece: string[] = []
  let width = 0
  for (const character of word) {
    const { advance } = letters(character)
    if (piece.length > 0 && width + advance > maxWidth) {
      yield piece
      piece = []
      width = 0
    }
    piece.push(character)
    width += advance
  }
  yield piece
}

export interface WrapOptions {
  readonly letters: Letters
  /** In font sizes. */
  readonly maxWidth: number
}

function wrapLine(line: string, options: WrapOptions): Word[] {
  const { letters, maxWidth } = options
  const space = letters(' ').advance
  const lines: Word[] = []
  let current: string[] = []
  let width = 0
  for (const text of line.split(/\s+/).filter((part) => part !== '')) {
    for (const [index, word] of [...pieces(charactersOf(text), options)].entries()) {
      const wordWidth = widthOf(word, letters)
      // Pieces of one word never share a line.
      const fits = index === 0 && current.length > 0 && width + space + wordWidth <= maxWidth
      if (current.length > 0 && !fits) lines.push(current)
      width = fits ? width + space + wordWidth : wordWidth
      current = fits ? [...current, ' ', ...word] : [...word]
    }
  }
  return [...lines, current]
}

/** Lines as lists of characters; an empty line of the text stays one. */
export function wrapText(text: string, options: WrapOptions): Word[] {
  return text.split('\n').flatMap((line) => wrapLine(line, options))
}
