/**
 * One node class, as a table: what it declares, what it costs, what it does. `object_info` is derived from the table, so
 * a declaration and the code that reads it cannot drift apart. Definitions hold no state and are loaded in every thread.
 */
import type { NodeCatalog, NodeDefinition } from '../graph/node-catalog.ts'
import type { Value } from '../values/value.ts'
import type { InputKind } from './input-kinds.ts'
import type { CallResult, NodeContext, ReadInputs } from './node-context.ts'

export type Kinds = Readonly<Record<string, InputKind<unknown>>>
type ReadOf<K extends Kinds> = { readonly [Name in keyof K]: K[Name] extends InputKind<infer T> ? T : never }
/** What `run` receives: required inputs, and optional ones when they were given. */
export type InputsOf<R extends Kinds, O extends Kinds> = ReadOf<R> & Partial<ReadOf<O>>
type ListsOf<T> = { readonly [Name in keyof T]: readonly T[Name][] }

interface OutputKind {
  readonly type: string
  /** Defaults to the type. */
  readonly name?: string
  readonly isList?: boolean
}

/**
 * `inline` runs on the engine thread and must be done within a fraction of a millisecond, or spend its time waiting; `compute` goes to the
 * pool, `isolated` to the threads of custom nodes.
 */
export type Cost = 'inline' | 'compute' | 'isolated'

/** Values for hidden inputs that an engine fills in. */
type HiddenType = 'PROMPT' | 'EXTRA_PNGINFO' | 'UNIQUE_ID'

interface Declaration<R extends Kinds, O extends Kinds> {
  readonly classType: string
  readonly displayName: string
  readonly category: string
  readonly description: string
  /** `classic` classes publish fewer fields than `schema` ones and are keyed by their id in the cache when they take it. */
  readonly style: 'classic' | 'schema'
  readonly required?: R
  readonly optional?: O
  readonly hidden?: Readonly<Record<string, HiddenType>>
  readonly outputs: readonly OutputKind[]
  readonly isOutputNode?: boolean
  readonly hasIntermediateOutput?: boolean
  readonly deprecated?: boolean
  readonly experimental?: boolean
  /** The class calls a partner's model. */
  readonly isApiNode?: boolean
  /** Inputs that the node judges itself, such as file names. */
  readonly selfChecked?: readonly string[]
  /** Those of them that name files; all of them unless said otherwise. */
  readonly fileInputs?: readonly string[]
  /** Self-checked inputs that name a folder of the caller's files. */
  readonly folderInputs?: readonly string[]
  /** Inputs that the class does not declare are handed over too, as they are. */
  readonly acceptsAllInputs?: boolean
  /** The same inputs may give another result: two nodes never share one. */
  readonly isNotIdempotent?: boolean
}

export interface NodeSpec<R extends Kinds, O extends Kinds> extends Declaration<R, O> {
  readonly cost: Cost | ((inputs: InputsOf<R, O>) => Cost)
  /** Joins the cache signature; sees constants only (links are absent). null: never cached. */
  changeValue?(inputs: Partial<InputsOf<R, O>>, context: Pick<NodeContext, 'files'>): string | null
  /** Names of lazy inputs that are still wanted, given what is known so far. */
  askLazy?(inputs: Partial<InputsOf<R, O>>): readonly string[]
  run(inputs: InputsOf<R, O>, context: NodeContext): CallResult | Promise<CallResult>
}

interface ListNodeSpec<R extends Kinds, O extends Kinds> extends Declaration<R, O> {
  readonly cost: Cost
  run(inputs: ListsOf<InputsOf<R, O>>, context: NodeContext): CallResult | Promise<CallResult>
}

/** A definition with its types erased: what the executor works with. */
export interface EngineNode {
  readonly classType: string
  readonly definition: NodeDefinition
  readonly inputKinds: Kinds
  readonly selfChecked: readonly string[]
  readonly fileInputs: readonly string[]
  readonly folderInputs: readonly string[]
  readonly acceptsAllInputs: boolean
  readonly hiddenTypes: ReadonlySet<string>
  readonly isKeyedById: boolean
  readonly asksLazily: boolean
  readonly hasChangeValue: boolean
  /** The processor time that one call may take; left out: it is bounded by the time of a call alone. */
  readonly cpuLimitMs?: number
  costOf(inputs: ReadInputs): Cost
  changeValue(inputs: ReadInputs, context: Pick<NodeContext, 'files'>): string | null
  askLazy(inputs: ReadInputs): readonly string[]
  run(inputs: ReadInputs, context: NodeContext): CallResult | Promise<CallResult>
}

function inputGroups(node: Declaration<Kinds, Kinds>): NodeDefinition['input'] {
  const specsOf = (kinds: Kinds) => Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, kind.spec]))
  // Old-style classes write a hidden input as its bare type, schema-style ones as a declaration.
  const hidden = Object.entries(node.hidden ?? {}).map(([name, type]) => [
    name,
    node.style === 'classic' ? type : [type],
  ])
  return {
    ...(node.required && { required: specsOf(node.required) }),
    ...(node.optional && { optional: specsOf(node.optional) }),
    ...(node.hidden && { hidden: Object.fromEntries(hidden) }),
  }
}

function toDefinition(node: Declaration<Kinds, Kinds>, isInputList: boolean): NodeDefinition {
  const input = inputGroups(node)
  const isSchema = node.style === 'schema'
  return {
    input,
    input_order: Object.fromEntries(Object.entries(input).map(([group, members]) => [group, Object.keys(members)])),
    is_input_list: isInputList,
    output: node.outputs.map((output) => output.type),
    output_is_list: node.outputs.map((output) => output.isList === true),
    output_name: node.outputs.map((output) => output.name ?? output.type),
    ...(isSchema && { output_matchtypes: null }),
    name: node.classType,
    display_name: node.displayName,
    description: node.description,
    category: node.category,
    output_node: node.isOutputNode === true,
    has_intermediate_output: node.hasIntermediateOutput === true,
    // Old-style classes publish these two only when they are set.
    ...((isSchema || node.deprecated) && { deprecated: node.deprecated === true }),
    ...((isSchema || node.experimental) && { experimental: node.experimental === true }),
    ...(isSchema && { dev_only: false, api_node: node.isApiNode === true }),
  }
}

type Runnable = Pick<EngineNode, 'costOf' | 'changeValue' | 'askLazy' | 'run' | 'asksLazily' | 'hasChangeValue'>

function toEngineNode(node: Declaration<Kinds, Kinds>, isInputList: boolean, runnable: Runnable): EngineNode {
  const hiddenTypes: ReadonlySet<string> = new Set(Object.values(node.hidden ?? {}))
  return {
    classType: node.classType,
    definition: toDefinition(node, isInputList),
    inputKinds: { ...node.required, ...node.optional },
    selfChecked: node.selfChecked ?? [],
    fileInputs: node.fileInputs ?? node.selfChecked ?? [],
    folderInputs: node.folderInputs ?? [],
    acceptsAllInputs: node.acceptsAllInputs === true,
    hiddenTypes,
    isKeyedById: node.isNotIdempotent === true || (node.style === 'classic' && hiddenTypes.has('UNIQUE_ID')),
    ...runnable,
  }
}

export function defineNode<const R extends Kinds = Record<never, never>, const O extends Kinds = Record<never, never>>(
  node: NodeSpec<R, O>,
): EngineNode {
  const { cost } = node
  // The casts are safe: the executor reads every input through its kind before it calls any of these.
  return toEngineNode(node, false, {
    asksLazily: node.askLazy !== undefined,
    hasChangeValue: node.changeValue !== undefined,
    costOf: (inputs) => (typeof cost === 'function' ? cost(inputs as InputsOf<R, O>) : cost),
    changeValue: (inputs, context) => node.changeValue?.(inputs as Partial<InputsOf<R, O>>, context) ?? null,
    askLazy: (inputs) => node.askLazy?.(inputs as Partial<InputsOf<R, O>>) ?? [],
    run: (inputs, context) => node.run(inputs as InputsOf<R, O>, context),
  })
}

/** A node that is called once with whole lists (`is_input_list`). */
export function defineListNode<
  const R extends Kinds = Record<never, never>,
  const O extends Kinds = Record<never, never>,
>(node: ListNodeSpec<R, O>): EngineNode {
  return toEngineNode(node, true, {
    asksLazily: false,
    hasChangeValue: false,
    costOf: () => node.cost,
    changeValue: () => null,
    askLazy: () => [],
    run: (inputs, context) => node.run(inputs as ListsOf<InputsOf<R, O>>, context),
  })
}

export type NodeTable = ReadonlyMap<string, EngineNode>

export function toNodeTable(nodes: readonly EngineNode[]): NodeTable {
  return new Map(nodes.map((node) => [node.classType, node]))
}

/** The result of a call that only hands on values, one per output slot. */
export function values(...outputs: Value[]): CallResult {
  return { outputs }
}

// What is done in a fraction of a millisecond is not worth sending to another thread.
const INLINE_ELEMENTS = 16_384

/** Where work on so many values runs. */
export function costOf(elements: number): Cost {
  return elements <= INLINE_ELEMENTS ? 'inline' : 'compute'
}

interface CatalogOptions {
  /** The build of the engine; left out: nothing is promised of its results. */
  readonly build?: string
  /** The classes whose results are the same again. */
  readonly repeatable?: ReadonlySet<string>
  /** Inputs that become names of files. */
  readonly nameInputs?: readonly string[]
}

/** The node classes as validation and clients see them: `object_info` definitions, from memory. */
export function createCatalog(
  table: NodeTable,
  { build, repeatable = new Set(), nameInputs = [] }: CatalogOptions = {},
): NodeCatalog {
  const classTypes = [...table.keys()]
  return {
    find: (classType) => table.get(classType)?.definition ?? null,
    classTypes: () => classTypes,
    selfCheckedInputs: (classType) => table.get(classType)?.selfChecked ?? [],
    fileInputs: (classType) => table.get(classType)?.fileInputs ?? [],
    folderInputs: (classType) => table.get(classType)?.folderInputs ?? [],
    repeatability(classType) {
      const kinds = table.get(classType)?.inputKinds
      if (build === undefined || kinds === undefined || !repeatable.has(classType)) return null
      return { build, names: nameInputs.filter((name) => Object.hasOwn(kinds, name)) }
    },
  }
}
