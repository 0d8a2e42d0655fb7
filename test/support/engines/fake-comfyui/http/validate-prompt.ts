/** As much of ComfyUI's validation as an adapter can meet: unknown classes, choices that are not installed, missing files. */
import type { NodeDefinition } from '../../../../../engine/graph/node-catalog.ts'
import { NumberText } from '../../../../../lib/json/lossless-json.ts'

type Graph = Record<string, { class_type: string; inputs: Record<string, unknown> }>

export type Verdict = { readonly ok: true; readonly outputs: string[] } | { readonly ok: false; readonly body: object }

export interface PromptRules {
  readonly classes: Record<string, NodeDefinition>
  isInputThere(name: string): boolean
}

export function validatePrompt(graph: Graph, { classes, isInputThere }: PromptRules): Verdict {
  const nodeErrors: Record<string, { errors: object[]; dependent_outputs: string[]; class_type: string }> = {}
  const outputs: string[] = []
  for (const [nodeId, { class_type: classType, inputs }] of Object.entries(graph)) {
    const definition = classes[classType]
    if (definition === undefined) return refuse(unknownClass(nodeId, classType), {})
    if (definition.output_node) outputs.push(nodeId)
    const errors =
      classType === 'DemoPicky'
        ? judgePicky(inputs)
        : Object.entries(inputs).flatMap(([name, value]) => findError(definition, { name, value, isInputThere }))
    if (errors.length > 0) nodeErrors[nodeId] = { errors, dependent_outputs: [], class_type: classType }
  }
  if (Object.keys(nodeErrors).length > 0) return refuse(FAILED, nodeErrors)
  return outputs.length === 0 ? refuse(NO_OUTPUTS, {}) : { ok: true, outputs }
}

/** As a validator that takes every input: its own word is all that counts. */
function judgePicky({ strength, image }: Record<string, unknown>): object[] {
  if (Number(strength instanceof NumberText ? strength.value : strength) <= 6) return []
  return [
    {
      type: 'custom_validation_failed',
      message: 'Custom validation failed for node',
      details: `strength - too strong for ${String(image ?? 'nothing')}`,
      extra_info: { input_name: 'strength' },
    },
  ]
}

interface Given {
  readonly name: string
  readonly value: unknown
  isInputThere(name: string): boolean
}

function findError({ input }: NodeDefinition, { name, value, isInputThere }: Given): object[] {
  const [type, options = {}] = input.required?.[name] ?? input.optional?.[name] ?? []
  if (options.image_upload === true && options.only_listed !== true && typeof value === 'string') {
    if (isInputThere(value)) return []
    const details = `${name} - Invalid image file: ${value}`
    return [
      {
        type: 'custom_validation_failed',
        message: 'Custom validation failed for node',
        details,
        extra_info: { input_name: name },
      },
    ]
  }
  if (!Array.isArray(type) || Array.isArray(value) || type.includes(value)) return []
  const details = `${name}: '${String(value)}' not in ${JSON.stringify(type)}`
  return [
    {
      type: 'value_not_in_list',
      message: 'Value not in list',
      details,
      extra_info: { input_name: name, received_value: value },
    },
  ]
}

const FAILED = {
  type: 'prompt_outputs_failed_validation',
  message: 'Prompt outputs failed validation',
  details: '',
  extra_info: {},
}
const NO_OUTPUTS = { type: 'prompt_no_outputs', message: 'Prompt has no outputs', details: '', extra_info: {} }

function unknownClass(nodeId: string, classType: string): object {
  return {
    type: 'missing_node_type',
    message: `Node '${classType}' not found. The custom node may not be installed.`,
    details: `Node ID '#${nodeId}'`,
    extra_info: { node_id: nodeId, class_type: classType, node_title: classType },
  }
}

function refuse(error: object, nodeErrors: object): Verdict {
  return { ok: false, body: { error, node_errors: nodeErrors } }
}
