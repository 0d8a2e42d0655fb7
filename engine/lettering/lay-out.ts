/** Where a text goes on a picture: wrapped, shrunk until it fits the height, flush with the margin. */

import { roundHalfEven } from '../../lib/python/numbers.ts'
import { inkRange, lineWidth, type Pen, type PlacedLine } from './draw-text.ts'
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

interface WrapOptions {
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

interface TextPlan {
  readonly width: number
  readonly height: number
  /** In percent of the height. */
  readonly fontPercent: number
  readonly position: 'top' | 'bottom'
  readonly align: 'left' | 'center' | 'right'
  readonly hasOutline: boolean
}

interface LaidOutText {
  readonly lines: readonly PlacedLine[]
  readonly pen: Pen
}

const MARGIN_SHARE = 0.01
const LINE_SPACING = 1.2
const OUTLINE_SHARE = 0.04
const SHRINK = 0.9
// Text is not made smaller than this, even if it is then cut off: it must stay readable.
const LEAST_PERCENT = 2
const LEAST_PIXELS = 10

interface Block {
  readonly lines: readonly (readonly string[])[]
  readonly pen: Pen
  readonly lineAdvance: number
  readonly above: number
  readonly height: number
}

function blockOf(text: string, letters: Letters, { size, maxWidth, hasOutline }: BlockOptions): Block {
  const outline = hasOutline ? Math.max(1, roundHalfEven(size * OUTLINE_SHARE)) : 0
  const pen = { letters, size, outline }
  const lines = wrapText(text, { letters, maxWidth: maxWidth / size })
  const lineAdvance = roundHalfEven(size * LINE_SPACING)
  const { above, below } = inkRange(lines, pen)
  return { lines, pen, lineAdvance, above, height: above + (lines.length - 1) * lineAdvance + below }
}

interface BlockOptions {
  readonly size: number
  readonly maxWidth: number
  readonly hasOutline: boolean
}

export function layOutText(text: string, letters: Letters, plan: TextPlan): LaidOutText {
  const { width, height, position, align, hasOutline } = plan
  const margin = roundHalfEven(MARGIN_SHARE * Math.min(width, height))
  const maxWidth = Math.max(1, width - 2 * margin)
  const maxHeight = Math.max(1, height - 2 * margin)
  let size = Math.max(1, roundHalfEven((plan.fontPercent / 100) * height))
  const floor = Math.min(size, Math.max(LEAST_PIXELS, roundHalfEven((LEAST_PERCENT / 100) * height)))
  let block = blockOf(text, letters, { size, maxWidth, hasOutline })
  while (block.height > maxHeight && size > floor) {
    size = Math.max(floor, Math.trunc(size * SHRINK))
    block = blockOf(text, letters, { size, maxWidth, hasOutline })
  }
  const { lines, pen, lineAdvance, above } = block
  const top = position === 'top' ? margin : height - margin - block.height
  const startOf = {
    left: () => margin,
    center: (w: number) => (width - w) / 2,
    right: (w: number) => width - margin - w,
  }
  const placed = lines.map((characters, index) => ({
    characters,
    x: startOf[align](lineWidth(characters, pen)),
    baseline: top + above + index * lineAdvance,
  }))
  return { lines: placed, pen }
}
