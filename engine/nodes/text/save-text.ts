/** A text as an output file. JSON that can be read is written anew with an indent; anything else as it is. */

import { defineNode } from '../../node/define-node.ts'
import { combo, string } from '../../node/input-kinds.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { dumpPyJson, readPyJson } from '../../python/python-json.ts'
import { costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import { hidden, nameFile, outputTarget } from '../files/saving.ts'

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

export const saveTextNode = defineNode({
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
})
