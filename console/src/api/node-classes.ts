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

/** The form of ComfyUI's object_info: `[type or choices, options]` by name, those that are needed and those that are not. */
export function readNodeClasses(text: string): NodeClasses {
  const document = parseLosslessJson(text)
  const classes = isJsonObject(document) ? document['classes'] : null
  return new Map(isJsonObject(classes) ? Object.entries(classes).map(([name, value]) => [name, toClass(value)]) : [])
}

function toClass(value: JsonValue): NodeClass {
  const { display_name: displayName, input } = isJsonObject(value) ? value : {}
  const { required, optional } = isJsonObject(input) ? input : {}
  const specs = [...toSpecs(required, true), ...toSpecs(optional, false)]
  return {
    displayName: typeof displayName === 'string' ? displayName : null,
    inputs: new Map(specs.map((spec) => [spec.name, spec])),
  }
}

function toSpecs(inputs: JsonValue | undefined, isRequired: boolean): readonly InputSpec[] {
  if (!isJsonObject(inputs)) return []
  return Object.entries(inputs).map(([name, spec]) => {
    const [type, given] = Array.isArray(spec) ? spec : [spec, undefined]
    const options = isJsonObject(given) ? given : {}
    const choices = Array.isArray(type) ? type : options['options']
    const upload = (['image', 'video', 'audio'] as const).find((media) => options[`${media}_upload`] === true)
    return {
      name,
      isRequired,
      type: typeof type === 'string' ? type : 'COMBO',
      preset: options['default'],
      min: options['min'],
      max: options['max'],
      step: options['step'],
      choices: Array.isArray(choices) ? choices.map(String) : null,
      isMultiline: options['multiline'] === true,
      upload: upload ?? null,
      tooltip: typeof options['tooltip'] === 'string' ? options['tooltip'] : null,
    }
  })
}
