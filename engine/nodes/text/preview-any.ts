/** Any value as text: strings as they are, numbers and booleans as Python prints them, the rest as JSON where it can be. */
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { pythonJsonDumps, pythonRepr, pythonStr } from '../../../lib/python/values.ts'
import { defineNode } from '../../node/define-node.ts'
import { anything } from '../../node/input-kinds.ts'
import { refuseLongText } from '../../python/text-limit.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { Blocker, isJsonOnly, type Value } from '../../values/value.ts'
import { weighValue } from '../../values/value-weight.ts'

const INDENT = 4
const ESCAPE = /\\(?:u([0-9a-f]{4})|.)/g

/** JSON text with its non-ASCII characters readable. Escapes are taken whole, so that `\\u00e9` stays what it is. */
function readable(json: string): string {
  return json.replace(ESCAPE, (whole, hex: string | undefined) => {
    const code = hex === undefined ? 0 : Number.parseInt(hex, 16)
    return code >= 0x7f ? String.fromCharCode(code) : whole
  })
}

/** Like Python's `str` of something that JSON cannot hold. */
function describe(value: Value): string {
  if (value instanceof Tensor) return `tensor of shape [${value.shape.join(', ')}]`
  if (value instanceof Blocker) return 'ExecutionBlocker'
  if (isJsonOnly(value)) return pythonRepr(value)
  if (Array.isArray(value)) return `[${value.map(describe).join(', ')}]`
  return `{${Object.entries(value as object)
    .map(([key, part]) => `${pythonRepr(key)}: ${describe(part)}`)
    .join(', ')}}`
}

function toText(value: Value): string {
  if (!isJsonOnly(value)) return describe(value)
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return pythonStr(value)
  return readable(pythonJsonDumps(value, { indent: INDENT }))
}

// A value of this weight is written in well under a millisecond.
const INLINE_BYTES = 65_536

export const previewAny = defineNode({
  classType: 'PreviewAny',
  displayName: 'Preview as Text',
  category: 'utilities',
  description: 'Shows any value as text.',
  style: 'classic',
  required: { source: anything({}) },
  outputs: [{ type: 'STRING' }],
  isOutputNode: true,
  // A text is shown as it is; anything else has to be written.
  cost: ({ source }) => (typeof source === 'string' || weighValue(source) <= INLINE_BYTES ? 'inline' : 'compute'),
  run({ source }) {
    const text = toText(source)
    refuseLongText(text.length)
    return { outputs: [text], report: { text: [{ kind: 'value', value: text }] } }
  },
})
