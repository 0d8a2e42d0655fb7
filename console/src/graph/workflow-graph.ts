/** A workflow in API format as nodes and links, read without rounding a number. Tolerant: one bad node does not hide the rest. */
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

export interface GraphNode {
  readonly id: string
  readonly classType: string
  /** What the author called it; null: nothing. */
  readonly title: string | null
  readonly inputs: readonly GraphInput[]
}

export interface GraphInput {
  readonly name: string
  /** A literal, or the link that feeds it. */
  readonly value: JsonValue
  readonly link: { readonly from: string; readonly slot: number } | null
}

export interface WorkflowGraph {
  readonly nodes: readonly GraphNode[]
  readonly links: readonly { readonly from: string; readonly to: string }[]
}

/** Throws SyntaxError when the text is not JSON. */
export function readWorkflow(text: string): WorkflowGraph {
  const value = parseLosslessJson(text)
  const entries = isJsonObject(value) ? Object.entries(value) : []
  const ids = new Set(entries.map(([id]) => id))
  const nodes = entries.flatMap(([id, node]) => (isJsonObject(node) ? [toNode(id, node, ids)] : []))
  const links = nodes.flatMap(({ id, inputs }) =>
    inputs.flatMap(({ link }) => (link === null ? [] : [{ from: link.from, to: id }])),
  )
  return { nodes, links }
}

function toNode(id: string, node: JsonObject, ids: ReadonlySet<string>): GraphNode {
  const { class_type: classType, inputs, _meta: meta } = node
  const title = isJsonObject(meta) && typeof meta['title'] === 'string' ? meta['title'] : null
  return {
    id,
    classType: typeof classType === 'string' ? classType : '?',
    title,
    inputs: isJsonObject(inputs)
      ? Object.entries(inputs).map(([name, value]) => ({ name, value, link: toLink(value, ids) }))
      : [],
  }
}

function toLink(value: JsonValue, ids: ReadonlySet<string>): GraphInput['link'] {
  if (!Array.isArray(value) || value.length !== 2) return null
  const [from, slot] = value
  return typeof from === 'string' && typeof slot === 'number' && ids.has(from) ? { from, slot } : null
}
