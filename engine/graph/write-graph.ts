/** Writes a Graph as the API-format text that is stored, executed and shown. Numbers keep the digits they came with. */
import { type JsonObject, type JsonValue, NumberText, stringifyLosslessJson } from '../../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../../lib/json/write-json-steps.ts'
import { finishNow, type Work } from '../../lib/waiting/turns.ts'
import { type Graph, type GraphNode, isLink } from './graph.ts'

// How many values are written in one call, and about how many between two steps.
const SMALL_VALUES = 500
const STEP_VALUES = 2000

export function writeGraph(graph: Graph): string {
  return finishNow(writeGraphSteps(graph))
}

/** The same in steps, so that a large graph does not hold up other work on this thread. */
export function* writeGraphSteps(graph: Graph): Work<string> {
  const pieces: string[] = []
  let members: string[] = []
  let values = 0
  for (const [id, node] of graph) {
    const count = countValues(node.inputs, SMALL_VALUES) + countValues(node.meta ?? null, SMALL_VALUES)
    const written = count > SMALL_VALUES ? yield* writeJsonSteps(toDocument(node)) : writeNode(node)
    members.push(`${JSON.stringify(id)}:${written}`)
    values += count
    if (values < STEP_VALUES) continue
    pieces.push(members.join(','))
    members = []
    values = 0
    yield
  }
  if (members.length > 0) pieces.push(members.join(','))
  return `{${pieces.join(',')}}`
}

function writeNode(node: GraphNode): string {
  // The lossless writer calls back for every value; most graphs have nothing that needs it.
  const document = toDocument(node)
  const isRare = holdsRareNumber(node.inputs) || (node.meta !== undefined && holdsRareNumber(node.meta))
  return isRare ? stringifyLosslessJson(document) : JSON.stringify(document)
}

function toDocument({ classType, inputs, meta }: GraphNode): JsonObject {
  const node = { class_type: classType, inputs }
  return meta === undefined ? node : { ...node, _meta: meta }
}

/** The number of values, at least 1; a long text counts as several. Stops counting above `enough`. */
function countValues(value: JsonValue, enough: number): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / 1000)
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return 1
  let count = 1
  // Not by `in`: that is slow for what a body was read into.
  for (const part of Array.isArray(value) ? value : Object.values(value)) {
    count += countValues(part, enough - count)
    if (count > enough) break
  }
  return count
}

function holdsRareNumber(value: JsonValue): boolean {
  if (typeof value === 'bigint') return true
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(holdsRareNumber)
  return value instanceof NumberText || Object.values(value).some(holdsRareNumber)
}

// The part of a graph that some of its output nodes need. Pure.

export function pruneGraph(graph: Graph, outputs: readonly string[]): Graph {
  const kept = new Set<string>()
  const waiting = [...outputs]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const node = graph.get(id)
    if (node === undefined || kept.has(id)) continue
    kept.add(id)
    for (const value of Object.values(node.inputs)) if (isLink(value)) waiting.push(value[0])
  }
  // Kept in the order of the document, which partly decides what runs first.
  return new Map([...graph].filter(([id]): boolean => kept.has(id)) as [string, GraphNode][])
}
