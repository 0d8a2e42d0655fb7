/**
 * Inputs that declare other inputs. Which ones exist depends on the values that the node was given: the children of the chosen
 * option, as many members of a growing group as its template allows, the children of a socket that is connected. Children are keyed by
 * dotted paths. A choice that is absent or unknown declares nothing, not even itself: the node then fails at run time.
 */
import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import { pythonEquals } from '../../lib/python/values.ts'
import {
  AUTOGROW,
  type DeclaredInput,
  DYNAMIC_COMBO,
  declareGroup,
  declareInput,
  type InputGroup,
  isDynamicInput,
  type NodeSpec,
} from './input-specs.ts'
import type { InputSpec } from './node-catalog.ts'

// A guard against catalogs that do not bound a group themselves.
const MAX_GROWN = 100

interface ComboOption {
  readonly key: JsonValue
  readonly inputs: InputGroup
}

interface AutogrowTemplate {
  readonly input: InputGroup
  readonly min?: number
  readonly max?: number
  readonly prefix?: string
  readonly names?: readonly string[]
}

/** The inputs that a node with these given inputs declares. */
export function declaredInputs(spec: NodeSpec, given: JsonObject): readonly DeclaredInput[] {
  if (!spec.isDynamic) return spec.inputs
  const declared: DeclaredInput[] = []
  for (const input of spec.inputs) expand(input, given, declared)
  return declared
}

// Nesting comes from the catalog, never from the caller, so recursion is safe.
function expand(input: DeclaredInput, given: JsonObject, into: DeclaredInput[]): void {
  if (!isDynamicInput(input)) into.push(input)
  else if (input.type === AUTOGROW) grow(input, given, into)
  else if (Object.hasOwn(given, input.path)) {
    if (input.type === DYNAMIC_COMBO) choose(input, given, into)
    else openSlot(input, given, into)
  }
}

function choose(input: DeclaredInput, given: JsonObject, into: DeclaredInput[]): void {
  const options = (input.options.options ?? []) as readonly ComboOption[]
  const option = options.find(({ key }) => pythonEquals(key, given[input.path]))
  if (option === undefined) return
  into.push(input)
  for (const child of declareGroup(option.inputs, input.path)) expand(child, given, into)
}

function openSlot(input: DeclaredInput, given: JsonObject, into: DeclaredInput[]): void {
  // The slot itself carries an ordinary type; only its children are dynamic.
  const type = typeof input.options.slotType === 'string' ? input.options.slotType : '*'
  into.push({ ...input, type, config: [type, input.options] })
  const group = (input.options.inputs ?? {}) as InputGroup
  for (const child of declareGroup(group, input.path)) expand(child, given, into)
}

function grow(input: DeclaredInput, given: JsonObject, into: DeclaredInput[]): void {
  const template = input.options.template as AutogrowTemplate | undefined
  const model = template === undefined ? undefined : templateInput(template.input)
  if (template === undefined || model === undefined) return
  const isRequired = input.category === 'required' && model.category === 'required'
  const min = isRequired ? (template.min ?? 1) : 0
  grownNames(template).forEach((name, index) => {
    const category = index < min ? 'required' : 'optional'
    const path = `${input.path}.${name}`
    if (category === 'required' || Object.hasOwn(given, path)) {
      expand(declareInput(model.spec, { path, name, category }), given, into)
    }
  })
}

function templateInput(group: InputGroup): { category: 'required' | 'optional'; spec: InputSpec } | undefined {
  for (const category of ['required', 'optional'] as const) {
    const [spec] = Object.values(group[category] ?? {})
    if (spec !== undefined) return { category, spec }
  }
  return undefined
}

function grownNames(template: AutogrowTemplate): readonly string[] {
  if (template.names !== undefined) return template.names.slice(0, MAX_GROWN)
  const count = Math.min(Number(template.max ?? MAX_GROWN), MAX_GROWN)
  return Array.from({ length: count }, (_, index) => `${template.prefix ?? ''}${index}`)
}
