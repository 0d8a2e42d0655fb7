/**
 * A workflow as a form: each literal of the graph is a field, grouped by its node. Types, bounds and choices come from the node
 * classes where they are known; else from the value itself. A value is JSON text all the way, so a seed of 64 bits stays what it is.
 * Pure.
 */
import {
  isJsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { InputSpec, NodeClasses } from '../api/node-classes.ts'
import type { GraphNode, WorkflowGraph } from '../graph/workflow-graph.ts'

export type FieldKind = 'text' | 'multiline' | 'integer' | 'number' | 'switch' | 'choice' | 'file' | 'json'

export interface Field {
  readonly node: string
  readonly input: string
  readonly kind: FieldKind
  /** JSON text of the value in the workflow. */
  readonly valueText: string
  readonly choices: readonly string[]
  readonly min: string | null
  readonly max: string | null
  readonly tooltip: string | null
  /** What a file field takes: image, audio, video. */
  readonly media: string | null
  readonly isSeed: boolean
}

export interface FieldGroup {
  readonly node: string
  readonly title: string
  readonly classType: string
  readonly fields: readonly Field[]
  /** What a person changes most stands first; the rest is folded. */
  readonly isFirst: boolean
}

const SEED = /^(noise_)?seed$/i
const FIRST_WORDS = /prompt|text|seed|image|video|audio|width|height|steps|cfg|strength|denoise/i

export function toFieldGroups({ nodes }: WorkflowGraph, classes: NodeClasses | null): readonly FieldGroup[] {
  const groups = nodes.flatMap((node): FieldGroup[] => {
    const fields = node.inputs
      .filter(({ link }) => link === null)
      .map(({ name, value }) => toField(node, name, value, classes))
    if (fields.length === 0) return []
    const title = node.title ?? classes?.get(node.classType)?.displayName ?? node.classType
    const isFirst = fields.some(({ input, kind }) => FIRST_WORDS.test(input) || kind === 'file' || kind === 'multiline')
    return [{ node: node.id, title, classType: node.classType, fields, isFirst }]
  })
  // A workflow of which nothing would stand first shows everything.
  return groups.some(({ isFirst }) => isFirst) ? groups : groups.map((group) => ({ ...group, isFirst: true }))
}

function toField(node: GraphNode, input: string, value: JsonValue, classes: NodeClasses | null): Field {
  const spec = classes?.get(node.classType)?.inputs.get(input)
  const kind = kindOf(value, spec)
  return {
    node: node.id,
    input,
    kind,
    valueText: stringifyLosslessJson(value),
    choices: spec?.choices ?? [],
    min: spec?.min === undefined ? null : stringifyLosslessJson(spec.min),
    max: spec?.max === undefined ? null : stringifyLosslessJson(spec.max),
    tooltip: spec?.tooltip ?? null,
    media: kind === 'file' ? (spec?.upload ?? mediaOf(node.classType)) : null,
    isSeed: (kind === 'integer' || kind === 'number') && SEED.test(input),
  }
}

function kindOf(value: JsonValue, spec: InputSpec | undefined): FieldKind {
  if (spec?.upload != null) return 'file'
  if (typeof value === 'string') {
    if (spec?.choices != null && spec.choices.length > 0) return 'choice'
    return spec?.isMultiline === true || value.includes('\n') || value.length > 60 ? 'multiline' : 'text'
  }
  if (typeof value === 'boolean') return 'switch'
  if (typeof value === 'bigint') return 'integer'
  if (typeof value === 'number') return spec?.type === 'FLOAT' || !Number.isInteger(value) ? 'number' : 'integer'
  return value instanceof NumberText ? 'number' : 'json'
}

function mediaOf(classType: string): string {
  return /audio/i.test(classType) ? 'audio' : /video/i.test(classType) ? 'video' : 'image'
}

/** What a person typed, as JSON text; or why it cannot be that. */
export function readField(field: Field, typed: string): { readonly valueText: string } | { readonly problem: string } {
  switch (field.kind) {
    case 'text':
    case 'multiline':
    case 'choice':
    case 'file':
      return { valueText: JSON.stringify(typed) }
    case 'switch':
      return { valueText: typed === 'true' ? 'true' : 'false' }
    case 'integer':
      return readNumber(field, typed.trim(), /^-?(0|[1-9]\d{0,30})$/, 'a whole number')
    case 'number':
      return readNumber(field, typed.trim(), /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$/, 'a number')
    case 'json':
      return isJson(typed) ? { valueText: typed } : { problem: 'not JSON' }
  }
}

function readNumber(field: Field, typed: string, form: RegExp, wanted: string) {
  if (!form.test(typed)) return { problem: wanted }
  if (field.min !== null && compareNumbers(typed, field.min) < 0) return { problem: `at least ${field.min}` }
  if (field.max !== null && compareNumbers(typed, field.max) > 0) return { problem: `at most ${field.max}` }
  return { valueText: typed }
}

/** Whole numbers exactly, others as far as a double goes. */
function compareNumbers(a: string, b: string): number {
  const isWhole = /^-?\d+$/
  if (isWhole.test(a) && isWhole.test(b)) {
    const [x, y] = [BigInt(a), BigInt(b)]
    return x < y ? -1 : x > y ? 1 : 0
  }
  return Number(a) - Number(b)
}

/** What stands in the field for a value. */
export function showValue({ kind, valueText }: Field): string {
  if (kind === 'text' || kind === 'multiline' || kind === 'choice' || kind === 'file') {
    const value: unknown = JSON.parse(valueText)
    return typeof value === 'string' ? value : valueText
  }
  return valueText
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const SEED_TOP = 2n ** 64n - 1n

/** Any seed up to the field's own bound. `random` gives 64 bits. */
export function randomSeed({ max }: Field, random: bigint): string {
  const bound = max !== null && /^\d+$/.test(max) ? BigInt(max) : SEED_TOP
  return String(random % (bound + 1n))
}

export interface InputChange {
  readonly node: string
  readonly input: string
  /** JSON text, so that a number keeps all its digits on the way. */
  readonly valueText: string
}

/** Puts new values into the text of a workflow. Everything else, numbers above all, stays as it was written. Pure. */
export function changeWorkflow(text: string, changes: readonly InputChange[]): string {
  const workflow = parseLosslessJson(text)
  if (!isJsonObject(workflow)) return text
  for (const { node, input, valueText } of changes) {
    const found = workflow[node]
    if (!isJsonObject(found)) continue
    const { inputs } = found
    if (isJsonObject(inputs)) inputs[input] = parseLosslessJson(valueText)
  }
  return stringifyLosslessJson(workflow)
}
