/**
 * The engine's own letters, so that text looks the same on every machine whatever fonts it has. A glyph is an advance and
 * the centre lines of its strokes, in hundredths of the font size: capitals reach 66, small letters 48, and the pen adds
 * half its width all around. Strokes are parted by `|`; `x,y` is a point, `(x,y,rx,ry,from,to)` a part of an ellipse in
 * degrees. Where a glyph stands between its neighbours is computed: ink is centred in the advance.
 */
export const GLYPHS: Readonly<Record<string, readonly [advance: number, strokes: string]>> = {
  ' ': [22, ''],
  '!': [24, '14,66 14,22|14,4 14,5'],
  '"': [34, '12,66 12,50|24,66 24,50'],
  '#': [58, '20,66 14,4|42,66 36,4|7,46 50,46|5,24 48,24'],
  $: [58, '(28,48,17,13,30,270) (28,21,19,14,90,-150)|28,74 28,-4'],
  '%': [74, '(17,50,12,16,0,360)|(57,19,12,16,0,360)|55,67 20,3'],
  '&': [65, '59,4 21,47 (30,55,12,11,220,-40) 18,33 (25,19,17,15,130,300) (30,30,26,26,290,360)'],
  "'": [18, '9,66 9,50'],
  '(': [32, '(38,27,26,50,115,245)'],
  ')': [32, '(-5,27,26,50,65,-65)'],
  '*': [56, '19,66 19,40|8,60 31,46|31,60 8,46'],
  '+': [58, '29,8 29,50|8,29 50,29'],
  ',': [22, '14,5 14,3 10,-9'],
  '-': [27, '6,26 24,26'],
  '.': [22, '14,4 14,5'],
  '/': [30, '3,-2 25,70'],
  '0': [58, '(28,35,20,31,0,360)'],
  '1': [58, '14,52 31,66 31,4'],
  '2': [58, '(28,48,19,18,165,-25) 8,4 49,4'],
  '3': [58, '(27,51,17,15,150,-90) (27,20,20,16,90,-155)'],
  '4': [58, '38,4 38,66 6,20 50,20'],
  '5': [58, '46,66 15,66 12,38 (27,25,20,21,125,-150)'],
  '6': [58, '(30,38,22,28,60,180) (28,24,20,20,180,540)'],
  '7': [58, '7,66 49,66 22,4'],
  '8': [58, '(28,51,17,15,0,360)|(28,20,20,16,0,360)'],
  '9': [58, '(26,32,22,28,240,360) (28,46,20,20,0,360)'],
  ':': [22, '14,4 14,5|14,44 14,45'],
  ';': [22, '14,44 14,45|14,5 14,3 10,-9'],
  '<': [58, '50,48 8,29 50,10'],
  '=': [58, '8,38 50,38|8,20 50,20'],
  '>': [58, '8,48 50,29 8,10'],
  '?': [50, '(28,50,16,16,170,-45) 28,28 28,22|28,4 28,5'],
  '@': [85, '(44,28,15,19,0,360)|60,46 59,20 (67,22,9,12,190,330) (45,28,36,38,-5,300)'],
  A: [64, '4,4 33,66 62,4|13,25 53,25'],
  B: [63, '11,4 11,66 36,66 (36,51,15,15,90,-90) 11,36|36,36 (38,20,17,16,90,-90) 11,4'],
  C: [70, '(37,35,27,31,45,315)'],
  D: [71, '11,4 11,66 32,66 (32,35,29,31,90,-90) 11,4'],
  E: [59, '50,66 11,66 11,4 51,4|11,36 47,36'],
  F: [57, '50,66 11,66 11,4|11,35 45,35'],
  G: [71, '(37,35,27,31,45,360) 64,4|64,33 42,33'],
  H: [73, '11,4 11,66|61,4 61,66|11,36 61,36'],
  I: [26, '14,4 14,66'],
  J: [54, '39,66 39,22 (23,22,16,18,0,-180)'],
  K: [61, '11,4 11,66|54,66 11,24|25,38 56,4'],
  L: [58, '11,66 11,4 50,4'],
  M: [87, '11,4 11,66 42,12 74,66 74,4'],
  N: [72, '11,4 11,66 61,4 61,66'],
  O: [74, '(39,35,29,31,0,360)'],
  P: [60, '11,4 11,66 35,66 (35,49,17,17,90,-90) 11,32'],
  Q: [73, '(39,35,29,31,0,360)|44,20 66,2'],
  R: [62, '11,4 11,66 37,66 (37,50,16,16,90,-90) 11,34|35,34 54,4'],
  S: [58, '(33,50,20,16,30,270) (33,19,22,15,90,-150)'],
  T: [61, '4,66 56,66|30,66 30,4'],
  U: [68, '11,66 11,28 (34,28,23,24,180,360) 57,66'],
  V: [62, '4,66 32,4 60,66'],
  W: [95, '4,66 25,4 47,62 69,4 90,66'],
  X: [62, '6,66 58,4|58,66 6,4'],
  Y: [58, '4,66 30,33 56,66|30,33 30,4'],
  Z: [59, '7,66 52,66 6,4 54,4'],
  '[': [31, '24,72 11,72 11,-14 24,-14'],
  '\\': [30, '3,70 25,-2'],
  ']': [30, '4,72 17,72 17,-14 4,-14'],
  '^': [58, '6,36 23,66 41,36'],
  _: [50, '0,-12 50,-12'],
  '`': [30, '9,72 19,60'],
  a: [53, '(25,35,16,13,150,0) 41,4|41,28 24,28 (24,16,16,12,90,270) 26,4 (26,20,15,16,270,360)'],
  b: [61, '10,69 10,4|(29,26,20,22,0,360)'],
  c: [53, '(27,26,20,22,45,315)'],
  d: [62, '46,69 46,4|(26,26,20,22,0,360)'],
  e: [55, '9,26 48,26 (28,26,20,22,0,315)'],
  f: [29, '(24,58,10,11,70,180) 14,4|4,48 26,48'],
  g: [62, '46,48 46,-2 (28,-2,18,14,0,-150)|(26,26,20,22,0,360)'],
  h: [59, '10,69 10,4|10,30 (28,30,18,18,180,0) 46,4'],
  i: [24, '11,4 11,48|11,66 11,67'],
  j: [23, '11,48 11,-6 (3,-6,8,10,0,-90)|11,66 11,67'],
  k: [52, '10,69 10,4|42,48 10,20|22,31 44,4'],
  l: [25, '11,69 11,4'],
  m: [86, '10,4 10,48|10,32 (26,32,16,16,180,0) 42,4|42,32 (58,32,16,16,180,0) 74,4'],
  n: [59, '10,4 10,48|10,30 (28,30,18,18,180,0) 46,4'],
  o: [59, '(28,26,20,22,0,360)'],
  p: [61, '10,48 10,-16|(30,26,20,22,0,360)'],
  q: [62, '46,48 46,-16|(26,26,20,22,0,360)'],
  r: [33, '10,4 10,48|10,28 (26,28,16,20,180,80)'],
  s: [46, '(23,37,14,11,30,270) (23,15,15,11,90,-150)'],
  t: [31, '14,62 14,14 (23,14,9,10,180,280)|4,48 25,48'],
  u: [59, '10,48 10,22 (28,22,18,18,180,360)|46,48 46,4'],
  v: [51, '5,48 25,4 45,48'],
  w: [78, '4,48 21,4 38,46 55,4 72,48'],
  x: [48, '6,48 42,4|42,48 6,4'],
  y: [51, '5,48 25,5|45,48 21,-9 14,-15 6,-16'],
  z: [46, '7,48 40,48 6,4 42,4'],
  '{': [30, '27,72 (27,60,9,12,90,180) 18,42 (8,42,10,13,0,-90) (8,16,10,13,90,0) 18,-2 (27,-2,9,12,180,270)'],
  '|': [25, '13,72 13,-18'],
  '}': [30, '6,72 (6,60,9,12,90,0) 15,42 (25,42,10,13,180,270) (25,16,10,13,90,180) 15,-2 (6,-2,9,12,0,-90)'],
  '~': [58, '8,23 14,32 22,34 36,26 44,27 50,36'],
  '¡': [24, '14,48 14,47|14,30 14,-14'],
  '¢': [53, '(27,26,18,20,45,315)|27,56 27,-4'],
  '£': [58, '46,56 (34,52,12,14,40,180) 22,20 12,4 48,4|10,34 38,34'],
  '¥': [58, '6,66 28,33 50,66|28,33 28,4|12,32 44,32|12,18 44,18'],
  '§': [50, '(25,54,14,12,30,250) 36,34 (25,28,14,10,40,-90)|(25,8,14,12,-150,70) 14,28 (25,34,14,10,220,90)'],
  '©': [74, '(37,35,32,32,0,360)|(38,35,15,17,50,310)'],
  '«': [46, '22,44 8,27 22,10|38,44 24,27 38,10'],
  '®': [74, '(37,35,32,32,0,360)|28,20 28,52 38,52 (38,44,8,8,90,-90) 28,36|37,36 46,20'],
  '°': [40, '(20,56,11,11,0,360)'],
  '±': [58, '29,16 29,54|8,35 50,35|8,4 50,4'],
  '´': [30, '11,60 21,72'],
  µ: [59, '10,48 10,-16|10,22 (28,22,18,18,180,360)|46,48 46,4'],
  '·': [22, '14,28 14,29'],
  '»': [46, '8,44 22,27 8,10|24,44 38,27 24,10'],
  '¿': [50, '(24,4,16,16,-10,-225) 24,28 24,32|24,48 24,47'],
  Æ: [90, '4,4 40,66 82,66|44,66 44,4 84,4|44,36 78,36|16,25 44,25'],
  Ð: [71, '11,4 11,66 32,66 (32,35,29,31,90,-90) 11,4|2,36 30,36'],
  '×': [58, '12,46 46,12|46,46 12,12'],
  Ø: [74, '(39,35,29,31,0,360)|16,2 62,68'],
  Þ: [60, '11,4 11,66|11,54 35,54 (35,37,17,17,90,-90) 11,20'],
  ß: [57, '10,4 10,52 (25,52,15,16,180,-60) 24,40 34,38 (30,22,18,18,70,-120)'],
  æ: [
    86,
    '(25,35,16,13,150,20) 42,26 42,28 24,28 (24,16,16,12,90,270) (26,20,16,16,270,350)|42,26 78,26 (60,26,18,22,0,315)',
  ],
  ð: [59, '16,66 38,50 (28,26,20,22,50,410)|20,52 40,66'],
  '÷': [58, '8,29 50,29|29,48 29,49|29,9 29,10'],
  ø: [59, '(28,26,20,22,0,360)|12,2 44,50'],
  þ: [61, '10,69 10,-16|(30,26,20,22,0,360)'],
  Đ: [71, '11,4 11,66 32,66 (32,35,29,31,90,-90) 11,4|2,36 30,36'],
  đ: [62, '46,69 46,4|(26,26,20,22,0,360)|28,58 56,58'],
  ı: [24, '11,4 11,48'],
  ȷ: [23, '11,48 11,-6 (3,-6,8,10,0,-90)'],
  Ł: [58, '11,66 11,4 50,4|2,26 28,44'],
  ł: [25, '11,69 11,4|2,28 20,42'],
  Œ: [98, '46,66 (36,35,28,31,90,270) 92,4|46,66 90,66|50,66 50,4|50,36 84,36'],
  œ: [92, '(28,26,20,22,0,360)|48,26 86,26 (67,26,19,22,0,315)'],
  '–': [50, '4,26 46,26'],
  '—': [90, '4,26 86,26'],
  '‘': [22, '14,66 10,54 11,52'],
  '’': [22, '12,66 14,62 10,52'],
  '‚': [22, '14,5 14,3 10,-9'],
  '“': [36, '14,66 10,54 11,52|28,66 24,54 25,52'],
  '”': [36, '12,66 14,62 10,52|26,66 28,62 24,52'],
  '„': [36, '14,5 14,3 10,-9|28,5 28,3 24,-9'],
  '•': [40, '(20,30,5,5,0,360)|(20,30,1,1,0,360)'],
  '…': [70, '10,4 10,5|35,4 35,5|60,4 60,5'],
  '‹': [30, '22,44 8,27 22,10'],
  '›': [30, '8,44 22,27 8,10'],
  '⁄': [22, '-6,4 28,66'],
  '€': [58, '(36,35,24,31,50,310)|4,43 42,43|4,27 38,27'],
  '™': [80, '4,66 32,66|18,66 18,38|42,38 42,66 56,46 70,66 70,38'],
  '−': [58, '8,29 50,29'],
}

/** Marks that sit on another letter: around its middle, above its top or below the baseline. */
const MARKS: Readonly<Record<string, { readonly position: 'above' | 'below'; readonly strokes: string }>> = {
  '\u0300': { position: 'above', strokes: '-9,12 3,2' },
  '\u0301': { position: 'above', strokes: '-3,2 9,12' },
  '\u0302': { position: 'above', strokes: '-12,2 0,12 12,2' },
  '\u0303': { position: 'above', strokes: '-13,3 -6,9 5,4 13,10' },
  '\u0304': { position: 'above', strokes: '-11,6 11,6' },
  '\u0306': { position: 'above', strokes: '(0,12,11,9,200,340)' },
  '\u0307': { position: 'above', strokes: '0,6 0,7' },
  '\u0308': { position: 'above', strokes: '-10,6 -10,7|10,6 10,7' },
  '\u030a': { position: 'above', strokes: '(0,9,7,7,0,360)' },
  '\u030b': { position: 'above', strokes: '-9,2 -2,12|4,2 11,12' },
  '\u030c': { position: 'above', strokes: '-12,12 0,2 12,12' },
  '\u0323': { position: 'below', strokes: '0,-12 0,-11' },
  '\u0326': { position: 'below', strokes: '1,-8 -2,-17' },
  '\u0327': { position: 'below', strokes: '1,2 2,-6 (-1,-11,7,6,60,-120)' },
  '\u0328': { position: 'below', strokes: '6,2 0,-8 4,-14 10,-13' },
}

/** What stands for a character without a glyph. */
const UNKNOWN_GLYPH: readonly [advance: number, strokes: string] = [58, '8,4 8,66 48,66 48,4 8,4']

/** Letters that lose their dot under a mark. */
const DOTLESS: Readonly<Record<string, string>> = { i: 'ı', j: 'ȷ' }

// Glyphs made ready to draw: strokes as chains of points, accents put on their letters, widths of texts.

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
