/** What a saved file says beside the workflow itself: labels that its user gave to inputs, and the inputs and outputs of App mode. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { readId } from '../../workflows/convert/saved/read-saved.ts'

export interface Labels {
  /** Of an input of a node; `graphId`: of the subgraph that it is in, null for the workflow itself. */
  ofInput(graphId: string | null, nodeId: string, input: string): string | null
  /** Of an input of a subgraph. */
  ofIo(subgraphId: string, input: string): string | null
}

const MAX_LABEL = 200

type LabelMap = Map<string, Map<string, string>>

export function readLabels(file: JsonObject): Labels {
  const inputs: LabelMap = new Map()
  const ios: LabelMap = new Map()
  const addNodes = (graph: JsonObject, graphId: string | null) => {
    for (const node of listOf(graph['nodes'])) addLabels(inputs, node, (nodeId) => keyOf(graphId, nodeId))
  }
  addNodes(file, null)
  // Subgraphs may be defined inside of each other; how deep was judged when the file was loaded.
  const waiting = [file]
  for (let graph = waiting.pop(); graph !== undefined; graph = waiting.pop()) {
    const { definitions } = graph
    for (const subgraph of isJsonObject(definitions) ? listOf(definitions['subgraphs']) : []) {
      addLabels(ios, subgraph)
      addNodes(subgraph, readId(subgraph['id']))
      waiting.push(subgraph)
    }
  }
  return {
    ofInput: (graphId, nodeId, input) => inputs.get(keyOf(graphId, nodeId))?.get(input) ?? null,
    ofIo: (subgraphId, input) => ios.get(subgraphId)?.get(input) ?? null,
  }
}

const keyOf = (graphId: string | null, nodeId: string) => `${graphId ?? ''}\0${nodeId}`

function listOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function addLabels(labels: LabelMap, owner: JsonObject, toKey = (id: string) => id): void {
  const id = readId(owner['id'])
  if (id === null) return
  const own = new Map<string, string>()
  for (const { name, label } of listOf(owner['inputs'])) {
    if (typeof name !== 'string' || typeof label !== 'string' || label.trim() === '') continue
    own.set(name, label.trim().slice(0, MAX_LABEL))
  }
  if (own.size > 0) labels.set(toKey(id), own)
}

/** One input of App mode: which node and which of its values, in whatever way the file says it. */
export interface AppInput {
  /** As it stands in the file. */
  readonly id: string
  readonly widget: string
}

export interface AppData {
  readonly inputs: readonly AppInput[]
  readonly outputs: readonly string[]
}

/** `extra.linearData`; empty lists when there is none. Entries of another shape are left out. */
export function readAppData(file: JsonObject): AppData {
  const { extra } = file
  const data = isJsonObject(extra) && isJsonObject(extra['linearData']) ? extra['linearData'] : {}
  const inputs = Array.isArray(data['inputs']) ? data['inputs'] : []
  const outputs = Array.isArray(data['outputs']) ? data['outputs'] : []
  return {
    inputs: inputs.flatMap((entry): AppInput[] => {
      const [written, widget] = Array.isArray(entry) ? entry : []
      const id = readLongId(written)
      return id === null || typeof widget !== 'string' ? [] : [{ id, widget }]
    }),
    outputs: outputs.flatMap((id) => readId(id) ?? []),
  }
}

// An id of the first form has three parts, of which two are encoded.
const MAX_APP_ID = 1_000

function readLongId(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value.length <= MAX_APP_ID ? value : null
  return readId(value)
}
