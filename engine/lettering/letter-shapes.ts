/** Glyphs made ready to draw: strokes as chains of points, accents put on their letters, widths of texts. */
import { DOTLESS, GLYPHS, MARKS, UNKNOWN_GLYPH } from './glyphs.ts'

/** x and y of every point, one after the other; y upwards from the baseline, all in font sizes. */
export type Stroke = Float64Array

interface Shape {
  readonly advance: number
  readonly strokes: readonly Stroke[]
}

/** Half the width of the pen. */
export const PEN_RADIUS = 0.042
/** From the top of a line to its baseline. */
export const ASCENT = 0.97

const UNITS = 100
const ARC_STEP_DEGREES = 12
// Where marks begin above small letters and above tall ones.
const LOW_MARK = 54
const HIGH_MARK = 72
const TALL = /[A-Zbdfhkl\u00c0-\u00de]/

function readToken(token: string): number[] {
  if (!token.startsWith('(')) return token.split(',').map(Number)
  const [x, y, rx, ry, from, to] = token.slice(1, -1).split(',').map(Number)
  const steps = Math.ceil(Math.abs(to - from) / ARC_STEP_DEGREES)
  return Array.from({ length: steps + 1 }, (_, step) => {
    const angle = ((from + ((to - from) * step) / steps) * Math.PI) / 180
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)]
  }).flat()
}

function readStrokes(text: string): number[][] {
  return text === '' ? [] : text.split('|').map((stroke) => stroke.split(' ').flatMap(readToken))
}

/** Moves strokes, in hundredths, and turns them into font sizes. */
function placed(strokes: readonly number[][], dx: number, dy: number): Stroke[] {
  return strokes.map((points) =>
    Float64Array.from(points, (value, index) => (value + (index % 2 === 0 ? dx : dy)) / UNITS),
  )
}

/** How far the ink must move so that it lies in the middle of the advance. */
function centring(strokes: readonly number[][], advance: number): number {
  const xs = strokes.flatMap((points) => points.filter((_, index) => index % 2 === 0))
  return xs.length === 0 ? 0 : advance / 2 - (Math.min(...xs) + Math.max(...xs)) / 2
}

function glyphOf(letter: string): readonly [number, string] {
  return Object.hasOwn(GLYPHS, letter) ? GLYPHS[letter] : UNKNOWN_GLYPH
}

function buildShape(character: string): Shape {
  const [letter, ...marks] = character.normalize('NFD')
  const known = marks.filter((mark) => Object.hasOwn(MARKS, mark))
  const isWhole = Object.hasOwn(GLYPHS, character)
  if (isWhole || known.length < marks.length || known.length === 0) {
    const [advance, text] = glyphOf(character)
    const strokes = readStrokes(text)
    return { advance: advance / UNITS, strokes: placed(strokes, centring(strokes, advance), 0) }
  }
  const hasMarkAbove = known.some((mark) => MARKS[mark].position === 'above')
  const [advance, text] = glyphOf(hasMarkAbove ? (DOTLESS[letter] ?? letter) : letter)
  const body = readStrokes(text)
  const strokes = placed(body, centring(body, advance), 0)
  for (const mark of known) {
    const top = MARKS[mark].position === 'below' ? 0 : TALL.test(letter) ? HIGH_MARK : LOW_MARK
    strokes.push(...placed(readStrokes(MARKS[mark].strokes), advance / 2, top))
  }
  return { advance: advance / UNITS, strokes }
}

/** Looks shapes up by character. Every character is built once. */
export type Letters = (character: string) => Shape

export function createLetters(): Letters {
  const built = new Map<string, Shape>()
  return (character) => {
    let shape = built.get(character)
    if (shape === undefined) {
      shape = buildShape(character)
      built.set(character, shape)
    }
    return shape
  }
}

/** Characters as they are drawn: letters with their accents as one. */
export function charactersOf(text: string): string[] {
  return [...text.normalize('NFC')]
}

/** In font sizes. */
export function widthOf(characters: readonly string[], letters: Letters): number {
  return characters.reduce((sum, character) => sum + letters(character).advance, 0)
}
