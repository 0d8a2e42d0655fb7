/** A dictionary or a list as JSON text, non-ASCII characters as they are. */
import { defineNode, values } from '../../node/define-node.ts'
import { int } from '../../node/input-kinds.ts'
import { ofType } from '../../node/value-kinds.ts'
import { dumpPyJson } from '../../python/json-text.ts'
import { toPyValue } from '../../python/python-value.ts'
import { refuseLongText } from '../../python/text-limit.ts'
import type { Value } from '../../values/value.ts'

const indent = int({ default: 2, min: 0, max: 8 })

function toText(value: Value, spaces: number): string {
  const text = dumpPyJson(toPyValue(value), spaces === 0 ? null : spaces)
  refuseLongText(text.length)
  return text
}

// How large the value is can only be found by walking it, which is the work itself.
const cost = 'compute'

export const convertDictionaryToString = defineNode({
  classType: 'ConvertDictionaryToString',
  displayName: 'Convert Dictionary to String',
  category: 'text',
  description: 'Writes a dictionary as JSON; an indent of 0 keeps it on one line.',
  style: 'schema',
  required: { dictionary: ofType('DICT'), indent },
  outputs: [{ type: 'STRING' }],
  cost,
  run: ({ dictionary, indent }) => values(toText(dictionary, indent)),
})

export const convertArrayToString = defineNode({
  classType: 'ConvertArrayToString',
  displayName: 'Convert Array to String',
  category: 'text',
  description: 'Writes a list as JSON; an indent of 0 keeps it on one line.',
  style: 'schema',
  required: { array: ofType('ARRAY'), indent },
  outputs: [{ type: 'STRING' }],
  cost,
  run: ({ array, indent }) => values(toText(array, indent)),
})
