/** Any value as text: strings as they are, numbers and booleans as Python prints them, the rest as JSON where it can be. */
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { pythonJsonDumps, pythonRepr, pythonStr } from '../../../lib/python/values.ts'
import { defineNode } from '../../node/define-node.ts'
import { anything, combo, string } from '../../node/input-kinds.ts'
import { weighValue } from '../../node/node-call.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { dumpPyJson, readPyJson } from '../../python/python-json.ts'
import { boundCpu, costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { Blocker, isJsonOnly, type Value } from '../../values/value.ts'
import { hidden, nameFile, outputTarget } from '../files/save-image.ts'

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

// A text as an output file. JSON that can be read is written anew with an indent; anything else as it is.

const FORMATS = ['txt', 'csv', 'md', 'json'] as const
type TextFormat = (typeof FORMATS)[number]

const CONTENT_TYPES: Readonly<Record<TextFormat, string>> = {
  txt: 'text/plain',
  csv: 'text/csv',
  md: 'text/markdown',
  json: 'application/json',
}
const JSON_INDENT = 2
// As upstream: a text counts as one pixel in the tokens of the prefix.
const ONE_PIXEL = { width: 1, height: 1 }

function toFileText(text: string, format: TextFormat): string {
  const data = format === 'json' ? readPyJson(text) : undefined
  return data === undefined ? text : dumpPyJson(data, JSON_INDENT)
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  if (!text.isWellFormed()) {
    throw new NodeError('UnicodeEncodeError', 'text: half of a surrogate pair cannot be written as UTF-8')
  }
  refuseLongText(text.length)
  return new TextEncoder().encode(text)
}

interface SaveInputs {
  readonly text: string
  readonly filename_prefix: string
  readonly format: TextFormat
}

async function saveText({ text, filename_prefix, format }: SaveInputs, context: NodeContext): Promise<CallResult> {
  const options = { prefix: filename_prefix, size: ONE_PIXEL, ending: '', extension: format } as const
  const target = outputTarget(context, { ...options, contentType: CONTENT_TYPES[format] })
  const file = await nameFile(encode(toFileText(text, format)), target, context)
  return { outputs: [text], report: { text: [{ kind: 'value', value: text }], files: [file] } }
}

export const saveTextNode = boundCpu(
  defineNode({
    classType: 'SaveText',
    displayName: 'Save Text',
    category: 'text',
    description: 'Writes a text as an output file and hands it on.',
    style: 'schema',
    required: {
      text: string({ forceInput: true, multiline: false }),
      filename_prefix: string({ default: 'ComfyUI', multiline: false }),
      format: combo(FORMATS, { default: 'txt' }),
    },
    hidden,
    outputs: [{ type: 'STRING', name: 'text' }],
    isOutputNode: true,
    cost: costOfTexts,
    run: saveText,
  }),
)
