/**
 * `defineNode` for classes with dynamic inputs or matched outputs: groups are put together before the node sees them, and
 * the fields of `object_info` that only such classes have are filled in. Everything else is define-node.ts's.
 */
import type { InputOptions, InputSpec, NodeDefinition } from '../graph/node-catalog.ts'
import type { Value } from '../values/value.ts'
import { type Cost, defineListNode, defineNode, type EngineNode, type NodeSpec } from './define-node.ts'
import type { InputKind } from './input-kinds.ts'
import type { CallResult, NodeContext, ReadInputs } from './node-context.ts'
import { NodeError } from './node-error.ts'

// Inputs that declare other inputs, and inputs whose type follows another's. In the graph the members of a group are
// separate inputs keyed by dotted path (`images.image0`, `format.bit_depth`); a node gets them put together again.

/** The inputs of one call by their key in the graph; members of groups are still unread. */
export type Given = Readonly<Record<string, unknown>>

/** An input that is put together from several keys. */
export interface GroupKind<T> {
  readonly spec: InputSpec
  /** Throws NodeError when a member is not of its kind. */
  readGroup(given: Given, path: string): T
}

export type Members<T> = Readonly<Record<string, T>>

interface AutogrowKind<T> extends GroupKind<Members<T>> {
  /** The same for a node that takes whole lists: every member is a list. */
  readLists(given: Given, path: string): Members<readonly T[]>
}

// As upstream: a growing group without names has at most a hundred members.
const MAX_GROWN = 100

/** How the members of a growing group are called: counted from 0 after a prefix, or by fixed names. */
type AutogrowNames = { readonly prefix: string; readonly max: number } | { readonly names: readonly string[] }

interface AutogrowTemplate<T> {
  /** The name under which the template declares its member; clients show it. */
  readonly member: string
  readonly kind: InputKind<T>
  readonly naming: AutogrowNames
  readonly min: number
}

function namesOf(naming: AutogrowNames): readonly string[] {
  if ('names' in naming) return naming.names
  return Array.from({ length: Math.min(naming.max, MAX_GROWN) }, (_, index) => `${naming.prefix}${index}`)
}

/** As many inputs of one kind as are wanted. Members come in the order of their names. */
export function autogrow<T>({ member, kind, naming, min }: AutogrowTemplate<T>): AutogrowKind<T> {
  const names = namesOf(naming)
  const named = 'names' in naming ? { names, min } : { prefix: naming.prefix, min, max: naming.max }
  function gather<Read>(given: Given, path: string, read: (value: Value, path: string) => Read): Members<Read> {
    const members: Record<string, Read> = {}
    for (const name of names) {
      const key = `${path}.${name}`
      if (Object.hasOwn(given, key)) members[name] = read(given[key] as Value, key)
    }
    return members
  }
  return {
    spec: ['COMFY_AUTOGROW_V3', { template: { input: { required: { [member]: kind.spec } }, ...named } }],
    readGroup: (given, path) => gather(given, path, kind.read),
    readLists: (given, path) =>
      gather(given, path, (list, key) => (list as Value[]).map((value) => kind.read(value, key))),
  }
}

type AnyKind = InputKind<unknown> | GroupKind<unknown>
type AnyKinds = Readonly<Record<string, AnyKind>>

function isGroup(kind: AnyKind): kind is GroupKind<unknown> {
  return 'readGroup' in kind
}

type ReadOfAny<K extends AnyKinds> = {
  readonly [Name in keyof K]: K[Name] extends GroupKind<infer T> ? T : K[Name] extends InputKind<infer T> ? T : never
}

interface ComboOption {
  readonly required?: AnyKinds
  readonly optional?: AnyKinds
}

type OptionInputs<O extends ComboOption> = (O['required'] extends AnyKinds ? ReadOfAny<O['required']> : unknown) &
  (O['optional'] extends AnyKinds ? Partial<ReadOfAny<O['optional']>> : unknown)

/** The chosen key with the inputs that belong to it. */
export type Chosen<Options extends Readonly<Record<string, ComboOption>>> = {
  readonly [Key in keyof Options]: { readonly key: Key; readonly inputs: OptionInputs<Options[Key]> }
}[keyof Options]

const specsOf = (kinds: AnyKinds) => Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, kind.spec]))

function optionSpec([key, option]: [string, ComboOption]) {
  const optional = option.optional && { optional: specsOf(option.optional) }
  return { key, inputs: { required: specsOf(option.required ?? {}), ...optional } }
}

function readMember(kind: AnyKind, given: Given, key: string): unknown {
  return isGroup(kind) ? kind.readGroup(given, key) : kind.read(given[key] as Value, key)
}

function missingArgument(path: string): NodeError {
  return new NodeError('TypeError', `missing 1 required positional argument: '${path}'`)
}

function readOption(option: ComboOption, given: Given, path: string): Record<string, unknown> {
  const inputs: Record<string, unknown> = {}
  for (const [name, kind] of Object.entries(option.required ?? {})) {
    const key = `${path}.${name}`
    if (!isGroup(kind) && !Object.hasOwn(given, key)) throw missingArgument(key)
    inputs[name] = readMember(kind, given, key)
  }
  for (const [name, kind] of Object.entries(option.optional ?? {})) {
    const key = `${path}.${name}`
    if (Object.hasOwn(given, key)) inputs[name] = readMember(kind, given, key)
  }
  return inputs
}

/** A choice with inputs of its own for every option. An unknown choice counts as none: nothing was declared for it. */
export function dynamicCombo<const Options extends Readonly<Record<string, ComboOption>>>(
  options: Options,
  extra: InputOptions = {},
): GroupKind<Chosen<Options>> {
  return {
    spec: ['COMFY_DYNAMICCOMBO_V3', { ...extra, options: Object.entries(options).map(optionSpec) }],
    readGroup(given, path) {
      const key = Object.hasOwn(given, path) ? given[path] : undefined
      if (typeof key !== 'string' || !Object.hasOwn(options, key)) throw missingArgument(path)
      return { key, inputs: readOption(options[key], given, path) } as Chosen<Options>
    },
  }
}

/** An input of any of the allowed types; inputs and outputs of one template have the same. Links are not checked. */
export function matchType(
  template: { readonly id: string; readonly allowedTypes: string },
  options: InputOptions = {},
): InputKind<Value> {
  const { id, allowedTypes } = template
  const spec: InputSpec = [
    'COMFY_MATCHTYPE_V3',
    { ...options, template: { template_id: id, allowed_types: allowedTypes } },
  ]
  return { spec, read: (value) => value }
}

/** What an output slot declares that has the type of a template. */
export const MATCHED_OUTPUT = 'COMFY_MATCHTYPE_V3'

/** a to z: how values are called in templates and expressions. */
export const LETTERS: readonly string[] = Array.from('abcdefghijklmnopqrstuvwxyz')

type NoKinds = Record<never, never>
type Facts = Omit<NodeSpec<NoKinds, NoKinds>, 'required' | 'optional' | 'cost' | 'changeValue' | 'askLazy' | 'run'>
type InputsOfAny<R extends AnyKinds, O extends AnyKinds> = ReadOfAny<R> & Partial<ReadOfAny<O>>

interface DynamicNodeSpec<R extends AnyKinds, O extends AnyKinds> extends Facts {
  readonly required?: R
  readonly optional?: O
  /** One template id per output, for classes with matched outputs. */
  readonly outputMatchTypes?: readonly string[]
  readonly cost: Cost | ((inputs: InputsOfAny<R, O>) => Cost)
  askLazy?(inputs: Partial<InputsOfAny<R, O>>): readonly string[]
  run(inputs: InputsOfAny<R, O>, context: NodeContext): CallResult | Promise<CallResult>
}

/** A copy of the node with fields of its `object_info` replaced. */
export function withDefinition(node: EngineNode, fields: Readonly<Record<string, unknown>>): EngineNode {
  return { ...node, definition: { ...node.definition, ...fields } as NodeDefinition }
}

/** The executor reads plain inputs only; a group passes through it as it is. */
function plainKind(kind: AnyKind): InputKind<unknown> {
  return isGroup(kind) ? { spec: kind.spec, read: (value: Value) => value } : kind
}

function plainKinds(kinds: AnyKinds | undefined): Record<string, InputKind<unknown>> | undefined {
  return kinds && Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, plainKind(kind)]))
}

type ReadGroup = (kind: AnyKind, given: Given, name: string) => unknown

/** Plain inputs as they were read, groups put together. */
function putTogether(kinds: AnyKinds, given: ReadInputs, readGroup: ReadGroup): Record<string, unknown> {
  const inputs: Record<string, unknown> = {}
  for (const [name, kind] of Object.entries(kinds)) {
    if (isGroup(kind)) inputs[name] = readGroup(kind, given, name)
    else if (Object.hasOwn(given, name)) inputs[name] = given[name]
  }
  return inputs
}

const readSingle: ReadGroup = (kind, given, name) => (isGroup(kind) ? kind.readGroup(given, name) : given[name])

function matched(node: EngineNode, matchTypes: readonly string[] | undefined): EngineNode {
  return matchTypes === undefined ? node : withDefinition(node, { output_matchtypes: matchTypes })
}

export function defineDynamicNode<const R extends AnyKinds = NoKinds, const O extends AnyKinds = NoKinds>(
  spec: DynamicNodeSpec<R, O>,
): EngineNode {
  const { required, optional, outputMatchTypes, cost, askLazy, run, ...facts } = spec
  const kinds: AnyKinds = { ...required, ...optional }
  const read = (given: ReadInputs) => putTogether(kinds, given, readSingle) as InputsOfAny<R, O>
  const node = defineNode({
    ...facts,
    ...(required && { required: plainKinds(required) }),
    ...(optional && { optional: plainKinds(optional) }),
    cost: typeof cost === 'function' ? (given) => cost(read(given)) : cost,
    ...(askLazy && { askLazy: (given: ReadInputs) => askLazy(given as Partial<InputsOfAny<R, O>>) }),
    run: (given, context) => run(read(given), context),
  })
  return matched(node, outputMatchTypes)
}

type ListKind = InputKind<unknown> | AutogrowKind<unknown>
type ListsOfAny<K extends Readonly<Record<string, ListKind>>> = {
  readonly [Name in keyof K]: K[Name] extends AutogrowKind<infer T>
    ? Readonly<Record<string, readonly T[]>>
    : K[Name] extends InputKind<infer T>
      ? readonly T[]
      : never
}

interface DynamicListNodeSpec<R extends Readonly<Record<string, ListKind>>> extends Facts {
  readonly required: R
  readonly outputMatchTypes?: readonly string[]
  readonly cost: Cost
  run(inputs: ListsOfAny<R>, context: NodeContext): CallResult | Promise<CallResult>
}

const readListed: ReadGroup = (kind, given, name) => (kind as AutogrowKind<unknown>).readLists(given, name)

/** A node that is called once with whole lists, also in its groups. */
export function defineDynamicListNode<const R extends Readonly<Record<string, ListKind>>>(
  spec: DynamicListNodeSpec<R>,
): EngineNode {
  const { required, outputMatchTypes, run, ...facts } = spec
  const node = defineListNode({
    ...facts,
    required: plainKinds(required),
    run: (given, context) => run(putTogether(required, given, readListed) as ListsOfAny<R>, context),
  })
  return matched(node, outputMatchTypes)
}

/** For classes that publish no display name: clients show the class instead. */
export function unnamed(node: EngineNode): EngineNode {
  return withDefinition(node, { display_name: null })
}
