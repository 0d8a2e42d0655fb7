/** Constants as nodes: each hands its value on, integers with all their digits. */

import { pythonReprText, pythonStrip } from '../../../lib/python/text.ts'
import {
  formatPythonNumber,
  PythonError,
  readPythonFloat,
  readPythonInt,
  roundHalfEven,
  toPythonFloat,
  truncatePythonFloat,
} from '../../../lib/python/values.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { boolean, color, combo, float, int, MAX_RESOLUTION, ofType, string, wideInt } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import {
  asNumber,
  fromPyNumber,
  inPython,
  type PyNumber,
  type PyValue,
  pyTypeName,
  toPyValue,
} from '../../python/python-value.ts'
import { costOfTexts } from '../../python/text-limit.ts'
import type { Value } from '../../values/value.ts'

// Values in another form: text, truth or number as a float and as an int (long integer texts keep their digits), a colour as
// numbers.

interface Converted {
  readonly float: number
  readonly int: bigint
}

function refuseNonFinite(float: number): void {
  if (Number.isFinite(float)) return
  throw new NodeError('ValueError', `Cannot convert non-finite value to number: ${formatPythonNumber(float)}`)
}

/** undefined when the text is no number of that kind. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof PythonError) return undefined
    throw error
  }
}

function convertText(text: string): Converted {
  const stripped = pythonStrip(text)
  if (stripped === '') throw new NodeError('ValueError', 'Cannot convert empty string to number.')
  const float = attempt(() => readPythonFloat(stripped))
  if (float === undefined) {
    throw new NodeError('ValueError', `Cannot convert string to number: ${pythonReprText(text)}`)
  }
  refuseNonFinite(float)
  return { float, int: attempt(() => readPythonInt(stripped)) ?? truncatePythonFloat(float) }
}

function convertNumber(number: PyNumber): Converted {
  if (typeof number === 'bigint') return { float: inPython(() => toPythonFloat(number)), int: number }
  return { float: number, int: inPython(() => truncatePythonFloat(number)) }
}

function convert(value: PyValue): Converted {
  if (typeof value === 'string') return convertText(value)
  const number = asNumber(value)
  if (number === null) throw new NodeError('TypeError', `Unsupported input type: ${pyTypeName(value)}`)
  return convertNumber(number)
}

export const numberConvert = defineNode({
  classType: 'ComfyNumberConvert',
  displayName: 'Convert Number',
  category: 'utilities',
  description: 'Turns a number, a text or a truth value into a float and an integer; fractions are cut off.',
  style: 'schema',
  required: { value: ofType('INT,FLOAT,STRING,BOOLEAN', { display_name: 'value' }) },
  outputs: [{ type: 'FLOAT' }, { type: 'INT' }],
  cost: costOfTexts,
  run({ value }) {
    const { float, int } = convert(toPyValue(value))
    return values(fromPyNumber(float), fromPyNumber(int))
  },
})

const COLOR = /^#([0-9a-f]{6})([0-9a-f]{2})?$/i

export const colorToRgbInt = defineNode({
  classType: 'ColorToRGBInt',
  displayName: 'Color Picker',
  category: 'utilities',
  description: 'A colour as one integer, as #RRGGBB text, and its opacity from 0 to 1.',
  style: 'schema',
  required: { color: color({ default: '#ffffff', socketless: true }) },
  outputs: [
    { type: 'INT', name: 'rgb_int' },
    { type: 'COLOR', name: 'hex' },
    { type: 'FLOAT', name: 'alpha' },
  ],
  cost: 'inline',
  run(inputs) {
    const match = COLOR.exec(inputs.color)
    if (match === null) throw new NodeError('ValueError', 'Color must be in format #RRGGBB or #RRGGBBAA')
    const [, rgb, alpha = 'ff'] = match
    return values(Number.parseInt(rgb, 16), `#${rgb}`, fromPyNumber(Number.parseInt(alpha, 16) / 255))
  },
})

// A width and a height for an aspect ratio and a number of megapixels.

const RATIOS = [
  '1:1 (Square)',
  '2:3 (Portrait Photo)',
  '3:2 (Photo)',
  '3:4 (Portrait Standard)',
  '4:3 (Standard)',
  '9:16 (Portrait Widescreen)',
  '16:9 (Widescreen)',
  '21:9 (Ultrawide)',
] as const

const MEGAPIXEL = 1024 * 1024

/** "16:9 (Widescreen)" as 16 and 9. */
function sidesOf(ratio: string): { readonly width: number; readonly height: number } {
  const [width, height] = ratio.split(' ')[0].split(':').map(Number)
  return { width, height }
}

export const resolutionSelector = defineNode({
  classType: 'ResolutionSelector',
  displayName: 'Resolution Selector',
  category: 'utilities',
  description: 'Width and height for an aspect ratio and a number of megapixels, as multiples of a step.',
  style: 'schema',
  required: {
    aspect_ratio: combo(RATIOS, { default: '1:1 (Square)' }),
    megapixels: float({ default: 1, min: 0.1, max: 16, step: 0.1 }),
    multiple: int({ advanced: true, default: 8, min: 8, max: 128, step: 4 }),
  },
  outputs: [
    { type: 'INT', name: 'width' },
    { type: 'INT', name: 'height' },
  ],
  cost: 'inline',
  run({ aspect_ratio, megapixels, multiple }) {
    const { width, height } = sidesOf(aspect_ratio)
    const scale = Math.sqrt((megapixels * MEGAPIXEL) / (width * height))
    const side = (ratio: number) => roundHalfEven((ratio * scale) / multiple) * multiple
    return values(side(width), side(height))
  },
})

// ComfyUI's sys.maxsize; beyond what a double holds.
const LARGEST = 9_223_372_036_854_775_807n

const facts = { category: 'utilities/primitive', style: 'schema', cost: 'inline' } as const
const handOn = ({ value }: { readonly value: Value }) => values(value)

export const primitiveInt = defineNode({
  ...facts,
  classType: 'PrimitiveInt',
  displayName: 'Int',
  description: 'An integer of up to 64 bits.',
  required: { value: wideInt({ min: -LARGEST, max: LARGEST, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT' }],
  run: handOn,
})

export const primitiveFloat = defineNode({
  ...facts,
  classType: 'PrimitiveFloat',
  displayName: 'Float',
  description: 'A number with a fraction.',
  required: { value: float({ min: -LARGEST, max: LARGEST, step: 0.1 }) },
  outputs: [{ type: 'FLOAT' }],
  run: handOn,
})

export const primitiveString = defineNode({
  ...facts,
  classType: 'PrimitiveString',
  displayName: 'Text',
  description: 'A line of text.',
  required: { value: string({ multiline: false }) },
  outputs: [{ type: 'STRING' }],
  run: handOn,
})

export const primitiveStringMultiline = defineNode({
  ...facts,
  classType: 'PrimitiveStringMultiline',
  displayName: 'Text (Multiline)',
  description: 'Text of several lines.',
  required: { value: string({ multiline: true }) },
  outputs: [{ type: 'STRING' }],
  run: handOn,
})

export const primitiveBoolean = defineNode({
  ...facts,
  classType: 'PrimitiveBoolean',
  displayName: 'Boolean',
  description: 'Yes or no.',
  required: { value: boolean({}) },
  outputs: [{ type: 'BOOLEAN' }],
  run: handOn,
})

export const seedNode = defineNode({
  classType: 'SeedNode',
  displayName: 'Seed',
  category: 'utilities',
  description: 'A seed that several nodes can share.',
  style: 'schema',
  required: { seed: wideInt({ min: 0, max: 2n ** 63n - 1n, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT', name: 'seed' }],
  cost: 'inline',
  run: ({ seed }) => values(seed),
})

const offset = int({ default: 0, min: 0, max: MAX_RESOLUTION })
const size = int({ default: 512, min: 1, max: MAX_RESOLUTION })

export const primitiveBoundingBox = defineNode({
  classType: 'PrimitiveBoundingBox',
  displayName: 'Bounding Box',
  category: 'utilities/primitive',
  description: 'A box in pixels: where its upper left corner is, how wide and how high it is.',
  style: 'schema',
  required: { x: offset, y: offset, width: size, height: size },
  outputs: [{ type: 'BOUNDING_BOX' }],
  cost: 'inline',
  run: ({ x, y, width, height }) => values({ x, y, width, height }),
})
