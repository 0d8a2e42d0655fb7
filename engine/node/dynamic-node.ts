/**
 * `defineNode` for classes with dynamic inputs or matched outputs: groups are put together before the node sees them, and
 * the fields of `object_info` that only such classes have are filled in. Everything else is define-node.ts's.
 */
import type { NodeDefinition } from '../graph/node-catalog.ts'
import type { Value } from '../values/value.ts'
import { type Cost, defineListNode, defineNode, type EngineNode, type NodeSpec } from './define-node.ts'
import { type AnyKind, type AnyKinds, type AutogrowKind, type Given, isGroup, type ReadOfAny } from './dynamic-kinds.ts'
import type { InputKind } from './input-kinds.ts'
import type { CallResult, NodeContext, ReadInputs } from './node-context.ts'

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
