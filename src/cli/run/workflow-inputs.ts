/**
 * `--input name=value` and `--input node.field=value`, read and put into a workflow. A value is JSON where it is valid JSON (numbers keep every digit),
 * else text; `@path` stands for a file to upload, `@@text` for text that begins with an @.
 */
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT, toPrintable } from '../terminal.ts'

type InputValue =
  | { readonly kind: 'value'; readonly value: JsonValue }
  | { readonly kind: 'file'; readonly path: string }

export interface WorkflowInput {
  readonly nodeId: string
  readonly field: string
  readonly value: InputValue
}

function refuse(message: string): never {
  throw new CommandError(toPrintable(message), EXIT.usage)
}

/** `parameters`: the inputs that have names of their own; such a name comes before the id of a node. */
export function readInput(text: string, workflow: JsonObject, parameters: readonly JsonObject[] = []): WorkflowInput {
  const equals = text.indexOf('=')
  const target = equals === -1 ? '' : text.slice(0, equals)
  const byInput = parameters.filter(({ input }) => input === target)
  const named = parameters.find(({ name }) => name === target) ?? (byInput.length === 1 ? byInput[0] : undefined)
  if (named !== undefined && typeof named['node_id'] === 'string' && typeof named['input'] === 'string') {
    return { nodeId: named['node_id'], field: named['input'], value: readInputValue(text.slice(equals + 1)) }
  }
  // Ids of nodes inside a group contain colons or dots, so the ids in the workflow decide where the id ends.
  const nodeId = Object.keys(workflow)
    .filter((id) => target.startsWith(`${id}.`))
    .sort((a, b) => b.length - a.length)[0]
  if (equals === -1 || !target.includes('.')) {
    const names = parameters.map(({ name }) => name)
    const known = names.length > 0 ? `; the workflow has ${names.slice(0, MAX_LISTED).join(', ')}` : ''
    refuse(
      `--input ${JSON.stringify(text)} is not of the form node.field=value, such as 3.seed=42 or 1.image=@cat.png, ` +
        `nor does it name a parameter${known}`,
    )
  }
  if (nodeId === undefined) {
    refuse(
      `--input ${JSON.stringify(text)} names a node that the workflow does not have; it has ${listNodes(workflow)}`,
    )
  }
  const field = target.slice(nodeId.length + 1)
  if (field === '') refuse(`--input ${JSON.stringify(text)} names no field of node ${nodeId}`)
  return { nodeId, field, value: readInputValue(text.slice(equals + 1)) }
}

const MAX_LISTED = 12

function listNodes(workflow: JsonObject): string {
  const names = Object.entries(workflow).map(([id, node]) => {
    const classType = isJsonObject(node) && typeof node['class_type'] === 'string' ? ` (${node['class_type']})` : ''
    return `${id}${classType}`
  })
  return names.length > MAX_LISTED ? `${names.slice(0, MAX_LISTED).join(', ')} …` : names.join(', ') || 'none'
}

function readInputValue(text: string): InputValue {
  if (text.startsWith('@@')) return { kind: 'value', value: text.slice(1) }
  if (text.startsWith('@')) return { kind: 'file', path: text.slice(1) }
  try {
    return { kind: 'value', value: parseLosslessJson(text) }
  } catch {
    return { kind: 'value', value: text }
  }
}

/** A copy of the workflow with these inputs set; everything else stays as it was written. */
export function withInputs(workflow: JsonObject, inputs: readonly (readonly [WorkflowInput, JsonValue])[]): JsonObject {
  const changed: JsonObject = { ...workflow }
  for (const [{ nodeId, field }, value] of inputs) {
    const node = changed[nodeId]
    if (!isJsonObject(node)) refuse(`node ${nodeId} of the workflow is not an object, so it has no input ${field}`)
    const before = isJsonObject(node['inputs']) ? node['inputs'] : {}
    changed[nodeId] = { ...node, inputs: { ...before, [field]: value } }
  }
  return changed
}
