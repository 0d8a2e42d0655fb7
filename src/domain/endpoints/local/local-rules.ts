/**
 * The `adapter` part of a model that is a workflow:
 *
 *   {"workflow": {"1": {"class_type": "LoadImage", "inputs": {"image": "picture.png"}}, …},
 *    "fields": {"width": "2.width", "text": ["3.text", "4.text"]},   where a field of the input goes: node and input
 *    "files": {"image": "picture.png"},                              data URIs, by the name under which they are loaded
 *    "output": "json"}                                               or "file": the first file itself
 */
import { createFileCheck, findFileNames } from '../../../../engine/graph/file-inputs.ts'
import { GraphError } from '../../../../engine/graph/graph.ts'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { replaceClasses } from '../../../../engine/graph/replace-classes.ts'
import { validate } from '../../../../engine/graph/validate/validate.ts'
import type { ValidationResult } from '../../../../engine/graph/validate/validation-result.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { FieldReader } from '../../models/catalog/field-reader.ts'
import { isRecord, type Json, type JsonRecord, type Model } from '../../models/catalog/model.ts'
import type { EndpointInput, Place } from '../endpoint.ts'
import { fillGraph } from '../fill-graph.ts'

export interface LocalRules {
  readonly graph: JsonObject
  /** What the values of a call replace. */
  readonly fields: readonly Pick<EndpointInput, 'name' | 'places'>[]
  /** By field, the name under which the graph loads the file. */
  readonly files: ReadonlyMap<string, string>
  readonly output: 'json' | 'file'
}

/** `catalog`: that of the built-in engine; null: there is none, so only the form is checked. */
export function checkLocalModel({ adapter, returns, input }: Model, catalog: NodeCatalog | null): readonly string[] {
  const problems: string[] = []
  const rules = read(adapter, problems)
  if (returns !== 'direct') problems.push('returns must be direct: a workflow answers at once')
  if (problems.length > 0 || catalog === null) return problems
  // Filled in with the example, because nodes can only be checked with the values that a caller gives.
  const graph = fillGraph(rules.graph, rules.fields, (input.example ?? {}) as JsonObject)
  const names = new Set(rules.files.values())
  return findProblems(graph, catalog, (name) => names.has(name)).map((problem) => `adapter.workflow ${problem}`)
}

export function readLocalRules({ adapter }: Pick<Model, 'adapter'>): LocalRules {
  return read(adapter, [])
}

function read(adapter: JsonRecord, problems: string[]): LocalRules {
  const reader = FieldReader.open(adapter, 'adapter', problems)
  const workflow = reader.object('workflow') ?? {}
  if (Object.keys(workflow).length === 0) reader.problem('workflow', 'must hold a workflow in API format')
  for (const [id, node] of Object.entries(workflow)) readNode(node, `adapter.workflow.${id}`, problems)
  const fields = Object.entries(reader.object('fields') ?? {}).map(([name, value]) => ({
    name,
    places: readPlaces(value),
  }))
  for (const { name, places } of fields) {
    const isKnown = places.length > 0 && places.every(({ nodeId }) => isRecord(workflow[nodeId]))
    if (!isKnown) reader.problem(`fields.${name}`, 'must name inputs of nodes of the workflow, such as "2.width"')
  }
  const files = Object.entries(reader.object('files') ?? {})
  for (const [field, name] of files)
    if (typeof name !== 'string') reader.problem(`files.${field}`, 'must be a file name')
  const output = reader.choice('output', ['json', 'file'] as const, 'json')
  reader.refuseOthers()
  return { graph: workflow as JsonObject, fields, files: new Map(files as [string, string][]), output }
}

/** Checks only that it is a node; its inputs are checked against the engine's catalog. */
function readNode(node: Json, path: string, problems: string[]): void {
  const reader = FieldReader.open(node, path, problems)
  if (!isRecord(node)) return
  reader.text('class_type', { fallback: '' })
  if (!isRecord(reader.value('inputs')))
    reader.problem('inputs', 'must be an object (use {} for a node without inputs)')
}

function readPlaces(value: Json): Place[] {
  const texts = Array.isArray(value) ? (value as readonly Json[]) : [value]
  return texts.flatMap((text) => {
    const dot = typeof text === 'string' ? text.lastIndexOf('.') : -1
    return dot > 0 ? [{ nodeId: (text as string).slice(0, dot), input: (text as string).slice(dot + 1) }] : []
  })
}

/** Where the graph loads the file of this name. */
export function findLoaders(graph: JsonObject, file: string): Place[] {
  return Object.entries(graph).flatMap(([nodeId, node]) =>
    isJsonObject(node) && isJsonObject(node['inputs'])
      ? Object.entries(node['inputs']).flatMap(([input, value]) => (value === file ? [{ nodeId, input }] : []))
      : [],
  )
}

/** What keeps the graph from running on an engine with this catalog; nothing when it can. */
function findProblems(graph: JsonValue, catalog: NodeCatalog, hasFile: (name: string) => boolean): readonly string[] {
  try {
    const { error, nodeErrors } = judgeGraph(graph, catalog, hasFile)
    const found = Object.entries(nodeErrors).flatMap(([id, { class_type, errors }]) =>
      errors.map(({ message, details }) => `node ${id} (${class_type}): ${message}: ${details}`),
    )
    return found.length > 0 || error === null ? found : [[error.message, error.details].filter(Boolean).join(': ')]
  } catch (error) {
    if (error instanceof GraphError) return [error.message]
    throw error
  }
}

/** Throws GraphError for what is no graph at all. */
export function judgeGraph(
  value: JsonValue,
  catalog: NodeCatalog,
  hasFile: (name: string) => boolean,
): ValidationResult {
  const graph = replaceClasses(readGraph(value), catalog)
  const checkInput = createFileCheck(findFileNames(graph, catalog), { hasFile, hasFolder: () => false })
  return validate(graph, { catalog, checkInput })
}
