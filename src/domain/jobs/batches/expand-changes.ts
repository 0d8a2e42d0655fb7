/** One graph with changes, as many graphs: each shares with the first whatever it does not change. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, type ServiceError } from '../../errors.ts'
import { MAX_BATCH } from './batch.ts'

/** By `<node id>.<input>`, the value that the input gets. */
export type Change = JsonObject

/** Every combination, the last name changing fastest. Throws invalid_field. */
export function multiply(product: Readonly<Record<string, readonly JsonValue[]>>): Change[] {
  const names = Object.keys(product)
  const count = names.reduce((sum, name) => sum * (product[name]?.length ?? 0), 1)
  if (count > MAX_BATCH) throw invalidField('product', `makes ${count} jobs; a batch has at most ${MAX_BATCH}`)
  return names.reduce<Change[]>(
    (changes, name) =>
      changes.flatMap((change) => (product[name] ?? []).map((value): Change => ({ ...change, [name]: value }))),
    [{}],
  )
}

/** Throws invalid_field. What is no graph stays what it is: whoever validates it says so. */
export function applyChange(workflow: JsonValue | undefined, change: Change, where: string): JsonValue | undefined {
  if (!isJsonObject(workflow)) return workflow
  const changed = new Map<string, JsonObject>()
  for (const [name, value] of Object.entries(change)) {
    const place = splitName((id) => Object.hasOwn(workflow, id) && isJsonObject(workflow[id]), name)
    if (place === null) throw unknownPlace(name, where)
    const [nodeId, input] = place
    const node = changed.get(nodeId) ?? (workflow[nodeId] as JsonObject)
    const inputs = isJsonObject(node['inputs']) ? node['inputs'] : {}
    changed.set(nodeId, { ...node, inputs: { ...inputs, [input]: value } })
  }
  return { ...workflow, ...Object.fromEntries(changed) }
}

/** Ids of nodes and names of inputs may both have dots: the first one behind an id that the graph has is the one between them. */
export function splitName(
  hasNode: (id: string) => boolean,
  name: string,
): readonly [nodeId: string, input: string] | null {
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    const nodeId = name.slice(0, dot)
    if (dot + 1 < name.length && hasNode(nodeId)) return [nodeId, name.slice(dot + 1)]
  }
  return null
}

function unknownPlace(name: string, where: string): ServiceError {
  const shown = JSON.stringify(name.slice(0, 100))
  return invalidField(where, `has the name ${shown}, which is no <node id>.<input> of the workflow`)
}
