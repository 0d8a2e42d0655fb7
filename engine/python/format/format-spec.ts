/** What stands after the colon of a field: `[[fill]align][sign][z][#][0][width][,|_][.precision][type]`. */
import { NodeError } from '../../node/node-error.ts'

type Alignment = '<' | '>' | '=' | '^'

export interface FormatSpec {
  readonly fill: string
  readonly align: Alignment
  readonly sign: string | null
  /** Minus zero is written as zero. */
  readonly isZeroPlain: boolean
  readonly isAlternate: boolean
  readonly width: number
  readonly grouping: string | null
  readonly precision: number | null
  /** One letter; empty for what is usual for a float. */
  readonly type: string
}

/** What a kind of value takes when nothing is said. */
interface SpecDefaults {
  readonly type: string
  readonly align: '<' | '>'
  /** For messages. */
  readonly typeName: string
}

// What CPython's widths and precisions can hold; whether there is room for them is judged when they are used.
const MAX_SIZE = 2 ** 63
const DIGIT = /^\d$/
const isAlignment = (character: string | undefined) => character !== undefined && '<>=^'.includes(character)

class SpecReader {
  readonly characters: readonly string[]
  at = 0

  constructor(text: string) {
    this.characters = Array.from(text)
  }

  /** The next character if it is one of these. */
  take(allowed: string): string | null {
    const character = this.characters[this.at]
    if (character === undefined || !allowed.includes(character)) return null
    this.at += 1
    return character
  }

  takeNumber(): number | null {
    const start = this.at
    while (DIGIT.test(this.characters[this.at] ?? '')) this.at += 1
    if (this.at === start) return null
    const number = Number(this.characters.slice(start, this.at).join(''))
    if (number >= MAX_SIZE) throw new NodeError('ValueError', 'Too many decimal digits in format string')
    return number
  }

  takeFill(): string | null {
    if (!isAlignment(this.characters[this.at + 1])) return null
    this.at += 1
    return this.characters[this.at - 1]
  }
}

function takeGrouping(reader: SpecReader): string | null {
  const grouping = reader.take(',') ?? reader.take('_')
  const next = reader.characters[reader.at]
  if ((grouping === ',' && next === '_') || (grouping === '_' && next === ',')) {
    throw new NodeError('ValueError', "Cannot specify both ',' and '_'.")
  }
  return grouping
}

function takePrecision(reader: SpecReader): number | null {
  if (reader.take('.') === null) return null
  const precision = reader.takeNumber()
  if (precision === null) throw new NodeError('ValueError', 'Format specifier missing precision')
  return precision
}

const GROUPED_TYPES: Readonly<Record<string, string>> = { ',': 'deEfFgG%', _: 'deEfFgG%boxX' }

export function readFormatSpec(text: string, defaults: SpecDefaults): FormatSpec {
  const reader = new SpecReader(text)
  const givenFill = reader.takeFill()
  const givenAlign = reader.take('<>=^') as Alignment | null
  const sign = reader.take('+- ')
  const isZeroPlain = reader.take('z') !== null
  const isAlternate = reader.take('#') !== null
  // With a fill of its own a zero is simply the first digit of the width.
  const hasZero = givenFill === null && reader.take('0') !== null
  const width = reader.takeNumber() ?? 0
  const grouping = takeGrouping(reader)
  const precision = takePrecision(reader)
  const rest = reader.characters.slice(reader.at)
  if (rest.length > 1) {
    throw new NodeError('ValueError', `Invalid format specifier '${text}' for object of type '${defaults.typeName}'`)
  }
  const type = rest[0] ?? defaults.type
  if (grouping !== null && type !== '' && !GROUPED_TYPES[grouping].includes(type)) {
    throw new NodeError('ValueError', `Cannot specify '${grouping}' with '${type}'.`)
  }
  const align = givenAlign ?? (hasZero && defaults.align === '>' ? '=' : defaults.align)
  return {
    fill: givenFill ?? (hasZero ? '0' : ' '),
    align,
    sign,
    isZeroPlain,
    isAlternate,
    width,
    grouping,
    precision,
    type,
  }
}

export function unknownType(type: string, typeName: string): NodeError {
  return new NodeError('ValueError', `Unknown format code '${type}' for object of type '${typeName}'`)
}
