/**
 * Text as coverage: for every pixel how much of it the pen touches, by its distance to the nearest stroke. A wider pen along
 * the same strokes draws an outline. Anti-aliased, and the same everywhere because nothing but arithmetic is involved.
 */
import { type Letters, PEN_RADIUS, type Stroke, widthOf } from './letter-shapes.ts'

interface Coverage {
  readonly width: number
  readonly height: number
  readonly data: Float32Array
}

export interface PlacedLine {
  readonly characters: readonly string[]
  /** Left end and baseline, in pixels. */
  readonly x: number
  readonly baseline: number
}

export interface Pen {
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
export function inkRange(lines: readonly (readonly string[])[], { letters, size, outline }: Pen): InkRange {
  const radius = PEN_RADIUS * size + outline
  return {
    above: reachOf(lines[0] ?? [], letters).top * size + radius,
    below: radius - reachOf(lines.at(-1) ?? [], letters).bottom * size,
  }
}

export function lineWidth(characters: readonly string[], { letters, size }: Pen): number {
  return widthOf(characters, letters) * size
}
