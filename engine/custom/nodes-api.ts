/**
 * `atelier/nodes`: what a node of your own imports; docs/custom-nodes.md tells the rest. This file imports nothing: it is
 * loaded beside the nodes in every thread that runs them, and it is all that an editor needs to check them.
 */

/** Floats in row-major order. An image is [batch, height, width, channels], a mask [batch, height, width]; values 0 to 1. */
export interface Tensor {
  readonly shape: readonly number[]
  readonly data: Float32Array
}

/** `samples` is [batch, channels, height / 8, width / 8]; other members are handed on. */
export type Latent = { readonly samples: Tensor } & { readonly [member: string]: Plain }

/** `waveform` is [batch, channels, length], values -1 to 1. */
export interface Audio {
  readonly waveform: Tensor
  readonly sampleRate: number
}

/** Whatever else may travel along a link. */
export type Plain =
  | null
  | boolean
  | number
  | bigint
  | string
  | Tensor
  | readonly Plain[]
  | { readonly [key: string]: Plain }

export type InputKind =
  | 'image'
  | 'mask'
  | 'latent'
  | 'audio'
  | 'int'
  | 'seed'
  | 'float'
  | 'string'
  | 'boolean'
  | 'choice'
  | 'anything'
  | 'type'

// Exists for the compiler only: it carries the type of the value from an input's declaration to `run`.
declare const VALUE: unique symbol

/** The declaration of an input; made by the functions below. */
export interface Input<T> {
  readonly kind: InputKind
  readonly options: Readonly<Record<string, unknown>>
  /** The choices of a `choice`. */
  readonly choices?: readonly string[]
  /** The socket type of a `type`. */
  readonly type?: string
  readonly isOptional?: boolean
  readonly [VALUE]?: T
}

export interface OptionalInput<T> extends Input<T> {
  readonly isOptional: true
}

export interface Hint {
  readonly tooltip?: string
}
export interface NumberOptions extends Hint {
  readonly default?: number
  readonly min?: number
  readonly max?: number
  readonly step?: number
}
export interface StringOptions extends Hint {
  readonly default?: string
  readonly multiline?: boolean
  readonly placeholder?: string
}
export interface BooleanOptions extends Hint {
  readonly default?: boolean
}
export interface ChoiceOptions<Choice extends string> extends Hint {
  readonly default?: Choice
}

const describe = <T>(kind: InputKind, options: object): Input<T> => ({ kind, options: { ...options } })

export const image = (options: Hint = {}): Input<Tensor> => describe('image', options)
export const mask = (options: Hint = {}): Input<Tensor> => describe('mask', options)
export const latent = (options: Hint = {}): Input<Latent> => describe('latent', options)
export const audio = (options: Hint = {}): Input<Audio> => describe('audio', options)
export const int = (options: NumberOptions = {}): Input<number> => describe('int', options)
/** An integer of up to 64 bits: a `bigint` once a number would change it. */
export const seed = (options: Hint = {}): Input<number | bigint> => describe('seed', options)
export const float = (options: NumberOptions = {}): Input<number> => describe('float', options)
export const string = (options: StringOptions = {}): Input<string> => describe('string', options)
export const boolean = (options: BooleanOptions = {}): Input<boolean> => describe('boolean', options)
/** Accepts every value that a link brings. */
export const anything = (options: Hint = {}): Input<Plain> => describe('anything', options)

/** One of the given words. */
export function choice<const Choice extends string>(
  choices: readonly Choice[],
  options: ChoiceOptions<NoInfer<Choice>> = {},
): Input<Choice> {
  return { ...describe<Choice>('choice', options), choices }
}

/** A socket type of your own, such as `PALETTE`: links to it come only from outputs of the same type. */
export function ofType(type: Uppercase<string>, options: Hint = {}): Input<Plain> {
  return { ...describe<Plain>('type', options), type }
}

/** The input may be left out; `run` then sees `undefined`. */
export function optional<T>(input: Input<T>): OptionalInput<T> {
  return { ...input, isOptional: true }
}

/** What each kind of output takes. */
export interface OutputTypes {
  readonly image: Tensor
  readonly mask: Tensor
  readonly latent: Latent
  readonly audio: Audio
  readonly int: number | bigint
  readonly float: number
  readonly string: string
  readonly boolean: boolean
  readonly anything: Plain
}

/** A kind, or a socket type of your own in capitals. */
export type OutputKind = keyof OutputTypes | Uppercase<string>

export type Inputs = Readonly<Record<string, Input<unknown>>>
export type Outputs = Readonly<Record<string, OutputKind>>

type ValueOf<I> = I extends Input<infer T> ? T : never
type OptionalNames<I extends Inputs> = {
  [Name in keyof I]: I[Name] extends { readonly isOptional: true } ? Name : never
}[keyof I]
export type InputValues<I extends Inputs> = {
  readonly [Name in Exclude<keyof I, OptionalNames<I>>]: ValueOf<I[Name]>
} & { readonly [Name in OptionalNames<I>]?: ValueOf<I[Name]> }
export type OutputValues<O extends Outputs> = {
  readonly [Name in keyof O]: O[Name] extends keyof OutputTypes ? OutputTypes[O[Name]] : Plain
}

/** A picture in a form that clients can show. */
export interface EncodedPicture {
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp'
  readonly bytes: Uint8Array
}

/** What a node may ask of its surroundings while it runs. */
export interface RunContext {
  /** Aborted when the job is cancelled; for `fetch`, timers and other things that wait. */
  readonly signal: AbortSignal
  /** The node's id in the graph. */
  readonly nodeId: string
  /** Throws when the job was cancelled. Call it now and then in long loops: there `signal` cannot change. */
  checkpoint(): void
  /** Step `value` of `max`; also a checkpoint. */
  progress(value: number, max: number): void
  /** Shows a picture while the node runs: the first image of a tensor, or an encoded one. */
  preview(picture: Tensor | EncodedPicture): void
  /** Adds a line to the job's log, as `console.log` does. */
  log(text: string): void
}

// Without declared outputs the compiler knows of none, or only that there may be some.
// biome-ignore lint/suspicious/noConfusingVoidType: a function that ends without `return` gives exactly this.
type Result<O extends Outputs> = keyof O extends never ? void : string extends keyof O ? void : OutputValues<O>

export interface NodeDefinition<I extends Inputs, O extends Outputs> {
  /** The `class_type` in a graph. Unique among all nodes. */
  readonly classType: string
  /** Shown to people; the class type unless given. */
  readonly displayName?: string
  /** Words with slashes, such as `image/filters`; `custom` unless given. */
  readonly category?: string
  readonly description?: string
  readonly inputs?: I
  /** Output slots by name, in the order in which links number them. */
  readonly outputs?: O
  /** The node runs even when nothing reads it. */
  readonly isOutputNode?: boolean
  /** false: it runs in every job, also when its inputs are those of an earlier run. */
  readonly isCached?: boolean
  run(inputs: InputValues<I>, context: RunContext): Result<O> | Promise<Result<O>>
}

/** How a loaded module's exports are recognised, also across two copies of this file. */
export const NODE_MARK: unique symbol = Symbol.for('atelier.node') as typeof NODE_MARK

/** A node class, ready to be exported. */
export interface CustomNode {
  readonly [NODE_MARK]: true
  readonly classType: string
}

export function defineNode<
  const I extends Inputs = Record<never, never>,
  const O extends Outputs = Record<never, never>,
>(definition: NodeDefinition<I, O>): CustomNode {
  return Object.freeze({ ...definition, [NODE_MARK]: true as const })
}

/** A tensor of zeros. */
export function newTensor(shape: readonly number[]): Tensor {
  if (!shape.every((side) => Number.isSafeInteger(side) && side >= 0)) {
    throw new RangeError(`a tensor of [${shape.join(', ')}] cannot be made`)
  }
  const count = shape.reduce((product, side) => product * side, 1)
  return { shape: [...shape], data: new Float32Array(count) }
}
