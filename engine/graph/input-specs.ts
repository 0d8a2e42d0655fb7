/**
 * The declared inputs of a node class in a form that validation can use directly. Each definition is read once and cached by its
 * object, since a catalog returns the same objects for every graph.
 */
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

export type InputGroup = Readonly<Partial<Record<InputCategory, Readonly<Record<string, InputSpec>>>>>

export interface NodeSpec {
  readonly inputs: readonly DeclaredInput[]
  /** Whether some input declares others depending on the given values; see dynamic-inputs.ts. */
  readonly isDynamic: boolean
  readonly outputTypes: readonly unknown[]
  readonly isOutput: boolean
  /** Schema-style classes keep their output types in a list, older ones in a tuple; Python's error texts name the type. */
  readonly outputSequence: 'list' | 'tuple'
}

export const AUTOGROW = 'COMFY_AUTOGROW_V3'
export const DYNAMIC_COMBO = 'COMFY_DYNAMICCOMBO_V3'
const DYNAMIC_SLOT = 'COMFY_DYNAMICSLOT_V3'
const DYNAMIC_TYPES: ReadonlySet<unknown> = new Set([AUTOGROW, DYNAMIC_COMBO, DYNAMIC_SLOT])

const CATEGORIES: readonly InputCategory[] = ['required', 'optional']
const NO_OPTIONS: InputOptions = {}

export function isDynamicInput(input: DeclaredInput): boolean {
  return DYNAMIC_TYPES.has(input.type)
}

const UPLOAD_OPTION = /^(?:animated_)?(\w+)_upload$/

function readUpload(options: InputOptions): string | null {
  const name = Object.keys(options).find((option) => options[option] === true && UPLOAD_OPTION.test(option))
  return name === undefined ? null : (UPLOAD_OPTION.exec(name)?.[1] ?? null)
}

export function declareInput(
  spec: InputSpec,
  identity: { readonly path: string; readonly name: string; readonly category: InputCategory },
): DeclaredInput {
  const [type, options = NO_OPTIONS] = spec
  return { ...identity, type, options, config: [type, options], upload: readUpload(options) }
}

/** The inputs of a group in the order of their declaration, required ones first. */
export function declareGroup(group: InputGroup, parentPath: string | null): DeclaredInput[] {
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
