/** What a text says about the workflow in it: whether it holds one, and which shape its graph has. Pure. */
import { createHash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

interface WorkflowText {
  readonly content: JsonObject
  /** As the editor saves it; else in API format. */
  readonly isSaved: boolean
}

/** Throws an Error whose message ends the sentence "this file …". */
export function readWorkflowText(text: string): WorkflowText {
  const content = parse(text.replace(/^\ufeff/, ''))
  if (isJsonObject(content)) {
    if (Array.isArray(content['nodes'])) return { content, isSaved: true }
    const nodes = Object.values(content)
    if (nodes.length > 0 && nodes.every((node) => isJsonObject(node) && typeof node['class_type'] === 'string'))
      return { content, isSaved: false }
  }
  throw new Error('is JSON, and holds no workflow')
}

function parse(text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch (error) {
    throw new Error(`is not valid JSON: ${(error as Error).message}`)
  }
}

/**
 * The same for two workflows that have the same nodes with the same links, whatever their texts, seeds, files and places on the
 * page are: the many pictures that somebody made with one workflow have one shape.
 */
export function shapeOf({ content, isSaved }: WorkflowText): string {
  const shape = isSaved ? shapeOfSaved(content) : shapeOfGraph(content)
  return createHash('sha256').update(JSON.stringify(shape)).digest('hex').slice(0, 8)
}

function shapeOfSaved(content: JsonObject): unknown {
  const { nodes, links, definitions } = content
  const subgraphs = isJsonObject(definitions) ? toList(definitions['subgraphs']) : []
  return [
    inOrder(toList(nodes).map((node) => (isJsonObject(node) ? [node['id'], node['type']] : []))),
    inOrder(toList(links).map(toEnds)),
    ...inOrder(subgraphs.map((graph) => (isJsonObject(graph) ? [graph['id'], shapeOfSaved(graph)] : []))),
  ]
}

/** Files of version 0.4 have links as lists, newer ones and subgraphs as objects. */
function toEnds(link: JsonValue): unknown {
  if (Array.isArray(link)) return link.slice(1, 5)
  return isJsonObject(link) ? ['origin_id', 'origin_slot', 'target_id', 'target_slot'].map((name) => link[name]) : []
}

function shapeOfGraph(content: JsonObject): unknown {
  return inOrder(
    Object.entries(content).map(([id, node]) => {
      const { class_type: classType, inputs } = isJsonObject(node) ? node : {}
      const links = Object.entries(isJsonObject(inputs) ? inputs : {}).filter(([, value]) => isLink(value))
      return [id, classType, inOrder(links)]
    }),
  )
}

function isLink(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}

function toList(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

/** Sorted, because the order of nodes and links in a file means nothing. Long integers are written as text. */
function inOrder(items: readonly unknown[]): string[] {
  return items
    .map((item) => JSON.stringify(item, (_key, value) => (typeof value === 'bigint' ? `${value}` : value)))
    .sort()
}
