/** Vector drawings as output files. */
import { pythonJsonDumps } from '../../../lib/python/values.ts'
import { defineNode } from '../../node/define-node.ts'
import { type InputKind, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { type Value, type ValueObject, valueTypeName } from '../../values/value.ts'
import { hidden, madeFrom, nameFiles, outputTarget } from './saving.ts'

/** Drawings as texts. */
const svg: InputKind<readonly string[]> = {
  spec: ['SVG', {}],
  read(value: Value) {
    const data = typeof value === 'object' && value !== null ? (value as ValueObject).data : undefined
    if (Array.isArray(data) && data.every((text) => typeof text === 'string')) return data as string[]
    throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'data'`)
  },
}

// The opening tag; a > inside a quoted attribute does not end it.
const OPENING_TAG = /<svg\b(?:"[^"]*"|'[^']*'|[^>"'])*>/

/** The drawing with a note of how it was made, right after its opening tag. */
export function withMetadata(drawing: string, json: string): string {
  // The end of a CDATA section inside the text is split over two sections: nothing in a workflow becomes markup.
  const safe = json.replaceAll(']]>', ']]]]><![CDATA[>')
  const note = `\n<metadata><![CDATA[\n${safe}\n]]></metadata>\n`
  return drawing.replace(OPENING_TAG, (tag) =>
    tag.endsWith('/>') ? `${tag.slice(0, -2)}>${note}</svg>` : `${tag}${note}`,
  )
}

const INDENT = 2

export const saveSvg = defineNode({
  classType: 'SaveSVGNode',
  displayName: 'Save SVG',
  category: 'image',
  description: 'Writes vector drawings as SVG outputs that remember their workflow.',
  style: 'schema',
  required: { svg, filename_prefix: string({ default: 'svg/ComfyUI', multiline: false }) },
  hidden,
  outputs: [{ type: 'SVG', name: 'svg' }],
  isOutputNode: true,
  cost: 'inline',
  async run({ svg: drawings, filename_prefix: prefix }, context) {
    const target = outputTarget(context, { prefix, extension: 'svg', contentType: 'image/svg+xml' })
    const json = pythonJsonDumps(Object.fromEntries(madeFrom(context)), { indent: INDENT })
    const encoded = drawings.map((drawing) => new Uint8Array(Buffer.from(withMetadata(drawing, json), 'utf8')))
    const images = await nameFiles(encoded, target, context)
    return { outputs: [{ data: [...drawings] }], report: { images } }
  },
})
