import { defineNode, values } from '../../node/define-node.ts'
import { string } from '../../node/input-kinds.ts'
import { readPyJson } from '../../python/json-text.ts'
import { pyStr } from '../../python/python-value.ts'
import { costOfTexts } from '../../python/text-limit.ts'

function extract(text: string, key: string): string {
  const data = readPyJson(text)
  // A list, a number or no JSON at all holds no keys.
  const value = data instanceof Map ? data.get(key) : undefined
  return value === undefined || value === null ? '' : pyStr(value)
}

export const jsonExtractString = defineNode({
  classType: 'JsonExtractString',
  displayName: 'Extract Text from JSON',
  category: 'text',
  description: 'Reads one top-level key of a JSON object as text; empty when there is none.',
  style: 'schema',
  required: { json_string: string({ multiline: true }), key: string({ multiline: false }) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ json_string, key }) => values(extract(json_string, key)),
})
