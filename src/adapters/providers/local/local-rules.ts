/**
 * The `adapter` part of a local model:
 *
 *   {"workflow": {"1": {"class_type": "LoadImage", "inputs": {"image": "picture.png"}}, …},
 *    "fields": {"width": "2.width", "text": ["3.text", "4.text"]},   where a field of the input goes: node and input
 *    "files": {"image": "picture.png"},                              data URIs, by the name under which they are loaded
 *    "output": "json"}                                               or "file": the first file itself
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import { FieldReader } from '../../../domain/models/catalog/field-reader.ts'
import { isRecord, type Json, type JsonRecord, type Model } from '../../../domain/models/catalog/model.ts'
import { checkWorkflow } from '../../../domain/models/workflows/run-workflow.ts'

export interface LocalRules {
  readonly workflow: JsonRecord
  readonly fields: Readonly<Record<string, readonly NodeInput[]>>
  readonly files: Readonly<Record<string, string>>
  readonly output: 'json' | 'file'
}

interface NodeInput {
  readonly node: string
  readonly name: string
}

/** `catalog`: that of the built-in engine; null: there is none, so only the form is checked. */
export function checkLocalModel({ adapter, returns, input }: Model, catalog: NodeCatalog | null): readonly string[] {
  const problems: string[] = []
  const rules = read(adapter, problems)
  if (returns !== 'direct') problems.push('returns must be direct: a workflow answers at once')
  if (problems.length > 0 || catalog === null) return problems
  // Filled in with the example, because nodes can only be checked with the values that a caller gives.
  const names = new Set(Object.values(rules.files))
  const workflow = fillIn(rules, input.example ?? {}) as JsonValue
  const found = checkWorkflow(workflow, { catalog, hasFile: (name) => names.has(name) })
  return found.map((problem) => `adapter.workflow ${problem}`)
}

export function readLocalRules({ adapter }: Model): LocalRules {
  return read(adapter, [])
}

function read(adapter: JsonRecord, problems: string[]): LocalRules {
  const reader = FieldReader.open(adapter, 'adapter', problems)
  const workflow = reader.object('workflow') ?? {}
  if (Object.keys(workflow).length === 0) reader.problem('workflow', 'must hold a workflow in API format')
  for (const [id, node] of Object.entries(workflow)) readNode(node, `adapter.workflow.${id}`, problems)
  const fields = Object.entries(reader.object('fields') ?? {}).map(
    ([field, value]) => [field, readNodeInputs(value)] as const,
  )
  for (const [field, inputs] of fields) {
    const isKnown = inputs.length > 0 && inputs.every(({ node }) => isRecord(workflow[node]))
    if (!isKnown) reader.problem(`fields.${field}`, 'must name inputs of nodes of the workflow, such as "2.width"')
  }
  const files = Object.entries(reader.object('files') ?? {})
  for (const [field, name] of files)
    if (typeof name !== 'string') reader.problem(`files.${field}`, 'must be a file name')
  const output = reader.choice('output', ['json', 'file'] as const, 'json')
  reader.refuseOthers()
  return {
    workflow,
    fields: Object.fromEntries(fields),
    files: Object.fromEntries(files) as Record<string, string>,
    output,
  }
}

/** Checks only that it is a node; its inputs are checked against the engine's catalog. */
function readNode(node: Json, path: string, problems: string[]): void {
  const reader = FieldReader.open(node, path, problems)
  if (!isRecord(node)) return
  reader.text('class_type', { fallback: '' })
  if (!isRecord(reader.value('inputs')))
    reader.problem('inputs', 'must be an object (use {} for a node without inputs)')
}

/** The workflow with the fields of the input filled in. */
export function fillIn({ workflow, fields }: LocalRules, input: JsonRecord): JsonRecord {
  const filled = structuredClone(workflow) as Record<string, Json>
  for (const [field, targets] of Object.entries(fields)) {
    const value = input[field]
    if (value === undefined || value === null) continue
    for (const { node, name } of targets) (inputsOf(filled, node) as Record<string, Json>)[name] = value
  }
  return filled
}

function inputsOf(workflow: JsonRecord, node: string): JsonRecord {
  const found = workflow[node]
  const inputs = isRecord(found) ? found['inputs'] : undefined
  if (!isRecord(inputs)) throw new Error(`the workflow has no node ${node} with inputs`)
  return inputs
}

function readNodeInputs(value: Json): NodeInput[] {
  const texts = Array.isArray(value) ? (value as readonly Json[]) : [value]
  return texts.flatMap((text) => {
    const dot = typeof text === 'string' ? text.lastIndexOf('.') : -1
    return dot > 0 ? [{ node: (text as string).slice(0, dot), name: (text as string).slice(dot + 1) }] : []
  })
}
