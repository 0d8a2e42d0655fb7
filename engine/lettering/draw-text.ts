/**
 * Text as coverage: for every pixel how much of it the pen touches, by its distance to the nearest stroke. A wider pen along
 * the same strokes draws an outline. Anti-aliased, and the same everywhere because nothing but arithmetic is involved.
 */

import { roundHalfEven } from '../../lib/python/values.ts'
import { charactersOf, type Letters, PEN_RADIUS, type Stroke, widthOf } from './glyphs.ts'

interface Coverage {
  readonly width: number
  readonly height: number
  readonly data: Float32Array
}

interface PlacedLine {
  readonly characters: readonly string[]
  /** Left end and baseline, in pixels. */
  readonly x: number
  readonly baseline: number
}

interface Pen {
  readonly letters: Letters
  /** Font size in pixels. */
  readonly size: number
  /** How much wider than the letters' own strokes on every side, in pixels. */
  readonly outline: number
}

interface Segment {
  readonly ax: number
  readonly ay: number
  readonly bx: number
  readonly by: number
}

/** Coverage of one straight piece with round ends, joined to what is there. */
function drawSegment({ width, height, data }: Coverage, { ax, ay, bx, by }: Segment, radius: number): void {
  const reach = radius + 0.5
  const left = Math.max(0, Math.floor(Math.min(ax, bx) - reach))
  const right = Math.min(width - 1, Math.ceil(Math.max(ax, bx) + reach))
  const top = Math.max(0, Math.floor(Math.min(ay, by) - reach))
  const bottom = Math.min(height - 1, Math.ceil(Math.max(ay, by) + reach))
  const [dx, dy] = [bx - ax, by - ay]
  const square = dx * dx + dy * dy
  for (let y = top; y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const [px, py] = [x + 0.5 - ax, y + 0.5 - ay]
      const along = square === 0 ? 0 : Math.max(0, Math.min(1, (px * dx + py * dy) / square))
      const [ox, oy] = [px - along * dx, py - along * dy]
      const covered = Math.min(1, reach - Math.sqrt(ox * ox + oy * oy))
      const at = y * width + x
      if (covered > data[at]) data[at] = covered
    }
  }
}

interface StrokeStart {
  readonly x: number
  readonly y: number
  readonly size: number
  readonly radius: number
}

function drawStroke(target: Coverage, stroke: Stroke, { x, y, size, radius }: StrokeStart): void {
  for (let at = 0; at + 3 < stroke.length; at += 2) {
    const ax = x + stroke[at] * size
    const ay = y - stroke[at + 1] * size
    const bx = x + stroke[at + 2] * size
    const by = y - stroke[at + 3] * size
    drawSegment(target, { ax, ay, bx, by }, radius)
  }
}

/** Draws lines into the coverage; what lies outside is left out. */
export function drawText(target: Coverage, lines: readonly PlacedLine[], pen: Pen, checkpoint: () => void): void {
  const { letters, size, outline } = pen
  const radius = PEN_RADIUS * size + outline
  for (const { characters, x, baseline } of lines) {
    checkpoint()
    if (baseline < -size || baseline > target.height + 2 * size) continue
    let at = x
    for (const character of characters) {
      const { advance, strokes } = letters(character)
      const isVisible = at < target.width + size && at + (advance + 1) * size > 0
      if (isVisible) {
        checkpoint()
        for (const stroke of strokes) drawStroke(target, stroke, { x: at, y: baseline, size, radius })
      }
      at += advance * size
    }
  }
}

interface InkRange {
  /** From the baseline of the first line upwards, in pixels. */
  readonly above: number
  /** From the baseline of the last line downwards. */
  readonly below: number
}

/** Highest and lowest point of the strokes, in font sizes; the baseline when there are none. */
function reachOf(characters: readonly string[], letters: Letters): { top: number; bottom: number } {
  let top = Number.NEGATIVE_INFINITY
  let bottom = Number.POSITIVE_INFINITY
  for (const stroke of characters.flatMap((character) => letters(character).strokes)) {
    for (let at = 1; at < stroke.length; at += 2) {
      top = Math.max(top, stroke[at])
      bottom = Math.min(bottom, stroke[at])
    }
  }
  return top < bottom ? { top: 0, bottom: 0 } : { top, bottom }
}

/** How far the ink of a block reaches above its first and below its last baseline. */
function inkRange(lines: readonly (readonly string[])[], { letters, size, outline }: Pen): InkRange {
  const radius = PEN_RADIUS * size + outline
  return {
    above: reachOf(lines[0] ?? [], letters).top * size + radius,
    below: radius - reachOf(lines.at(-1) ?? [], letters).bottom * size,
  }
}

function lineWidth(characters: readonly string[], { letters, size }: Pen): number {
  return widthOf(characters, letters) * size
}

// Where a text goes on a picture: wrapped, shrunk until it fits the height, flush with the margin.

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
