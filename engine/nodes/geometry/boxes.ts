/** Boxes as detectors hand them on: one, a list for every frame alike, or a list per frame; coordinates may be fractional. */

import { NumberText } from '../../../lib/json/lossless-json.ts'
import { ofType } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { isValueObject, type Value, type ValueObject, valueTypeName } from '../../values/value.ts'

export interface Detection {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly label: string | null
  readonly score: number
}

/** The declaration of an input that only takes links. */
export const boxesInput = () =>
  ofType('BOUNDING_BOX', { default: { x: 0, y: 0, width: 512, height: 512 }, socketless: true, forceInput: true })

function readNumber(box: ValueObject, key: string, absent?: number): number {
  if (!Object.hasOwn(box, key)) {
    if (absent !== undefined) return absent
    throw new NodeError('KeyError', `'${key}'`)
  }
  const value = box[key]
  const number = value instanceof NumberText ? Number(value.text) : value
  if (typeof number === 'number' && Number.isFinite(number)) return number
  throw new NodeError('TypeError', `bboxes: ${key} must be a number, got '${valueTypeName(value)}'`)
}

function readDetection(value: Value): Detection {
  if (!isValueObject(value)) {
    throw new NodeError(
      'TypeError',
      `bboxes: expected boxes with x, y, width and height, got '${valueTypeName(value)}'`,
    )
  }
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((key) => readNumber(value, key))
  const label = typeof value['label'] === 'string' ? value['label'] : null
  return { x, y, width, height, label, score: readNumber(value, 'score', 1) }
}

/** The boxes of every frame; a single list stands for all frames. Empty when there are none at all. */
export function readBoxes(value: Value): readonly (readonly Detection[])[] {
  if (isValueObject(value)) return [[readDetection(value)]]
  if (!Array.isArray(value) || value.length === 0) return []
  if (!Array.isArray(value[0])) return [value.map(readDetection)]
  return value.map((frame) => (Array.isArray(frame) ? frame.map(readDetection) : [readDetection(frame)]))
}
