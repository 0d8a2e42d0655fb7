/** Which node classes there are and what they take, read losslessly: bounds of seeds have 64 bits. Pure. */
import { isJsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

export interface InputSpec {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly preset: JsonValue | undefined
  readonly min: JsonValue | undefined
  readonly max: JsonValue | undefined
  readonly step: JsonValue | undefined
  readonly choices: readonly string[] | null
  readonly isMultiline: boolean
  readonly upload: string | null
  readonly tooltip: string | null
}

export interface NodeClass {
  readonly displayName: string | null
  readonly inputs: ReadonlyMap<string, InputSpec>
}

export type NodeClasses = ReadonlyMap<string, NodeClass>

export function readNodeClasses(text: string): NodeClasses {
  const document = parseLosslessJson(text)
  const nodes = isJsonObject(document) ? document['nodes'] : null
  return new Map(isJsonObject(nodes) ? Object.entries(nodes).map(([name, value]) => [name, toClass(value)]) : [])
}

function toClass(value: JsonValue): NodeClass {
  const { display_name: displayName, inputs } = isJsonObject(value) ? value : {}
  const specs = Array.isArray(inputs) ? inputs.flatMap((input) => toSpec(input)) : []
  return {
    displayName: typeof displayName === 'string' ? displayName : null,
    inputs: new Map(specs.map((spec) => [spec.name, spec])),
  }
}

function toSpec(value: JsonValue): readonly InputSpec[] {
  if (!isJsonObject(value) || typeof value['name'] !== 'string') return []
  const { choices, type, upload, tooltip } = value
  return [
    {
      name: value['name'],
      type: typeof type === 'string' ? type : '*',
      isRequired: value['is_required'] === true,
      preset: value['default'],
      min: value['min'],
      max: value['max'],
      step: value['step'],
      choices: Array.isArray(choices) ? choices.map(String) : null,
      isMultiline: value['is_multiline'] === true,
      upload: typeof upload === 'string' ? upload : null,
      tooltip: typeof tooltip === 'string' ? tooltip : null,
    },
  ]
}
