/**
 * Values in another form: text, truth or number as a float and as an int (long integer texts keep their digits), a colour as
 * numbers.
 */

import {
  formatPythonNumber,
  PythonError,
  readPythonFloat,
  readPythonInt,
  toPythonFloat,
  truncatePythonFloat,
} from '../../../lib/python/numbers.ts'
import { pythonReprText, pythonStrip } from '../../../lib/python/text.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { color, ofType } from '../../node/input-kinds.ts'
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
