/**
 * The declared inputs of a node class in a form that validation can use directly. Each definition is read once and cached by its
 * object, since a catalog returns the same objects for every graph.
 */

import type { JsonObject, JsonValue } from '../../lib/json/lossless-json.ts'
import { pythonEquals } from '../../lib/python/values.ts'
import type { InputOptions, InputSpec, NodeDefinition } from './node-catalog.ts'

type InputCategory = 'required' | 'optional'

export interface DeclaredInput {
  /** The key in the node's inputs: the name, or the dotted path of an input inside a dynamic one. */
  readonly path: string
  /** The last segment of the path. */
  readonly name: string
  readonly category: InputCategory
  readonly type: string | readonly unknown[]
  readonly options: InputOptions
  /** `[type, options]` as error bodies show it. */
  readonly config: readonly [type: string | readonly unknown[], options: InputOptions]
  /** What is uploaded for it (`image`, `audio` ...) when the value names a file of the caller; else null. */
  readonly upload: string | null
}

type InputGroup = Readonly<Partial<Record<InputCategory, Readonly<Record<string, InputSpec>>>>>

export interface NodeSpec {
  readonly inputs: readonly DeclaredInput[]
  /** Whether some input declares others depending on the given values. */
  readonly isDynamic: boolean
  readonly outputTypes: readonly unknown[]
  readonly isOutput: boolean
  /** Schema-style classes keep their output types in a list, older ones in a tuple; Python's error texts name the type. */
  readonly outputSequence: 'list' | 'tuple'
}

const AUTOGROW = 'COMFY_AUTOGROW_V3'
const DYNAMIC_COMBO = 'COMFY_DYNAMICCOMBO_V3'
const DYNAMIC_SLOT = 'COMFY_DYNAMICSLOT_V3'
const DYNAMIC_TYPES: ReadonlySet<unknown> = new Set([AUTOGROW, DYNAMIC_COMBO, DYNAMIC_SLOT])

const CATEGORIES: readonly InputCategory[] = ['required', 'optional']
const NO_OPTIONS: InputOptions = {}

function isDynamicInput(input: DeclaredInput): boolean {
  return DYNAMIC_TYPES.has(input.type)
}

const UPLOAD_OPTION = /^(?:animated_)?(\w+)_upload$/

function readUpload(options: InputOptions): string | null {
  const name = Object.keys(options).find((option) => options[option] === true && UPLOAD_OPTION.test(option))
  return name === undefined ? null : (UPLOAD_OPTION.exec(name)?.[1] ?? null)
}

function declareInput(
  spec: InputSpec,
  identity: { readonly path: string; readonly name: string; readonly category: InputCategory },
): DeclaredInput {
  const [type, options = NO_OPTIONS] = spec
  return { ...identity, type, options, config: [type, options], upload: readUpload(options) }
}

/** The inputs of a group in the order of their declaration, required ones first. */
function declareGroup(group: InputGroup, parentPath: string | null): DeclaredInput[] {
  return CATEGORIES.flatMap((category) =>
    Object.entries(group[category] ?? {}).map(([name, spec]) =>
      declareInput(spec, { path: parentPath === null ? name : `${parentPath}.${name}`, name, category }),
    ),
  )
}

const known = new WeakMap<NodeDefinition, NodeSpec>()

export function readNodeSpec(definition: NodeDefinition): NodeSpec {
  let spec = known.get(definition)
  if (spec === undefined) {
    const inputs = declareGroup(definition.input, null)
    spec = {
      inputs,
      isDynamic: inputs.some(isDynamicInput),
      outputTypes: definition.output,
      isOutput: definition.output_node === true,
      outputSequence: Object.hasOwn(definition, 'output_matchtypes') ? 'list' : 'tuple',
    }
    known.set(definition, spec)
  }
  return spec
}

// Inputs that declare other inputs. Which ones exist depends on the values that the node was given: the children of the chosen
// option, as many members of a growing group as its template allows, the children of a socket that is connected. Children are keyed by
// dotted paths. A choice that is absent or unknown declares nothing, not even itself: the node then fails at run time.

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
