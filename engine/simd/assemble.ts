/**
 * From kernels to a WebAssembly module: one memory, one exported function per kernel. The bytes are made when a thread first
 * needs them, so what runs is what stands in the source and there is no file to keep in step.
 */
/**
 * WebAssembly instructions as functions that nest like expressions: `f32x4.add(a, b)` is the code that leaves a + b. Only
 * what the kernels use. Nothing is checked here; the engine's own validator does that when a module is compiled.
 */

/** Bytes of machine-independent code, nested as they were composed. */
export type Code = readonly (number | Code)[]

type ValueType = 'i32' | 'f32' | 'v128'

export interface Local {
  readonly get: Code
  set(value: Code): Code
}

/** Whole numbers in WebAssembly's variable length, lowest seven bits first. */
function unsigned(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  do {
    const low = rest & 0x7f
    rest >>>= 7
    bytes.push(rest === 0 ? low : low | 0x80)
  } while (rest !== 0)
  return bytes
}

function signed(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const low = rest & 0x7f
    rest >>= 7
    // The last byte's sixth bit is the sign.
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0)
    bytes.push(isLast ? low : low | 0x80)
    if (isLast) return bytes
  }
}

const SIMD = 0xfd
const unary =
  (opcode: number) =>
  (value: Code): Code => [value, SIMD, unsigned(opcode)]
const binary =
  (opcode: number) =>
  (left: Code, right: Code): Code => [left, right, SIMD, unsigned(opcode)]
const scalar =
  (opcode: number) =>
  (left: Code, right: Code): Code => [left, right, opcode]
const load =
  (opcode: number) =>
  (address: Code, offset = 0): Code => [address, SIMD, unsigned(opcode), 0, unsigned(offset)]

export const i32 = {
  const: (value: number): Code => [0x41, signed(value)],
  load: (address: Code, offset = 0): Code => [address, 0x28, 0, unsigned(offset)],
  loadByte: (address: Code): Code => [address, 0x2d, 0, 0],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, 0x36, 0, unsigned(offset)],
  add: scalar(0x6a),
  sub: scalar(0x6b),
  remainder: scalar(0x70),
  lessThan: scalar(0x49),
  notLess: scalar(0x4f),
}

export const f32 = {
  const: (value: number): Code => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)],
}

export const v128 = {
  load: load(0),
  /** One 32-bit word in all four lanes. */
  load32Splat: load(9),
  /** Eight bytes, the rest zero. */
  load64Zero: load(93),
  store: (address: Code, value: Code, offset = 0): Code => [address, value, SIMD, unsigned(11), 0, unsigned(offset)],
  /** The first four bytes of a vector. */
  store32: (address: Code, value: Code): Code => [address, value, SIMD, unsigned(90), 0, 0, 0],
  zero: [SIMD, unsigned(12), ...new Array<number>(16).fill(0)] as Code,
  and: binary(0x4e),
  /** Bits of `left` where the mask has ones, else of `right`. */
  select: (left: Code, right: Code, mask: Code): Code => [left, right, mask, SIMD, unsigned(82)],
}

export const i8x16 = {
  /** Byte k of the result is byte `lanes[k]` of both vectors laid end to end. */
  shuffle: (left: Code, right: Code, lanes: readonly number[]): Code => [left, right, SIMD, unsigned(13), lanes],
  absolute: unary(0x60),
  subtract: binary(0x71),
  /** Sixteen-bit numbers as bytes, clipped to 0..255. */
  narrow: binary(0x66),
}

export const i16x8 = {
  /** 32-bit numbers as sixteen-bit ones, clipped. */
  narrow: binary(0x85),
  extendLow: unary(0x89),
  extendHigh: unary(0x8a),
  /** Each two neighbouring bytes added. */
  addNeighbours: unary(0x7d),
  lessOrEqual: binary(0x33),
  absolute: unary(0x80),
  add: binary(0x8e),
  subtract: binary(0x91),
}

export const i32x4 = {
  splat: unary(17),
  addNeighbours: unary(0x7f),
  extendLow: unary(0xa9),
  extendHigh: unary(0xaa),
  shiftLeft: binary(0xab),
  shiftRight: binary(0xac),
  add: binary(0xae),
  /** Products of sixteen-bit numbers, each two neighbours added. */
  dot: binary(0xba),
  /** Drops the fraction; not-a-number becomes 0. */
  truncate: unary(0xf8),
}

export const f32x4 = {
  splat: unary(19),
  lessOrEqual: binary(0x45),
  squareRoot: unary(0xe3),
  add: binary(0xe4),
  subtract: binary(0xe5),
  multiply: binary(0xe6),
  divide: binary(0xe7),
  /** left * right + addend, rounded once where the processor can; every 64-bit ARM and every x86 of the last ten years can. */
  multiplyAdd: (left: Code, right: Code, addend: Code): Code => [left, right, addend, SIMD, unsigned(0x105)],
  /** `right` where it is less, else `left`: not-a-number on the left stays. */
  least: binary(0xea),
  greatest: binary(0xeb),
  convert: unary(0xfa),
}

const VOID = 0x40
const branchIf = (depth: number, condition: Code): Code => [condition, 0x0d, depth]

/** Runs the body for counter = from, from + step, … below `to`. Counters are addresses, so comparisons are unsigned. */
export function forEach(
  counter: Local,
  { from, to, step }: { readonly from: Code; readonly to: Code; readonly step: Code },
  body: Code,
): Code {
  return [
    counter.set(from),
    [0x02, VOID],
    branchIf(0, i32.notLess(counter.get, to)),
    [0x03, VOID],
    body,
    counter.set(i32.add(counter.get, step)),
    branchIf(0, i32.lessThan(counter.get, to)),
    [0x0b, 0x0b],
  ]
}

/** Numbers that the host passes: addresses and lengths as i32, factors as f32. */
export type ParameterTypes = Readonly<Record<string, 'i32' | 'f32'>>

export interface Kernel<P extends ParameterTypes = ParameterTypes> {
  readonly parameters: P
  readonly locals: readonly ValueType[]
  readonly code: Code
}

export type NewLocal = (type: ValueType) => Local

/** A function of its parameters, in their order, without a result. */
export function defineKernel<const P extends ParameterTypes>(
  parameters: P,
  build: (given: { readonly [Name in keyof P]: Local }, newLocal: NewLocal) => Code,
): Kernel<P> {
  const names = Object.keys(parameters)
  const locals: ValueType[] = []
  const newLocal: NewLocal = (type) => localAt(names.length + locals.push(type) - 1)
  const given = Object.fromEntries(names.map((name, index) => [name, localAt(index)]))
  const code = build(given as { readonly [Name in keyof P]: Local }, newLocal)
  return { parameters, locals, code }
}

function localAt(index: number): Local {
  return { get: [0x20, unsigned(index)], set: (value) => [value, 0x21, unsigned(index)] }
}

const TYPE_BYTES: Readonly<Record<ValueType, number>> = { i32: 0x7f, f32: 0x7d, v128: 0x7b }
const SECTIONS = { type: 1, function: 3, memory: 5, export: 7, code: 10 } as const
const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
export const PAGE_BYTES = 65_536

const vector = (items: readonly Code[]): Code => [unsigned(items.length), items]

function flatten(code: Code, into: number[] = []): number[] {
  for (const part of code) {
    if (typeof part === 'number') into.push(part)
    else flatten(part, into)
  }
  return into
}

function withSize(code: Code): Code {
  const bytes = flatten(code)
  return [unsigned(bytes.length), bytes]
}

const section = (id: number, content: Code): Code => [id, withSize(content)]

function exported(name: string, kind: number, index: number): Code {
  const bytes = [...Buffer.from(name)]
  return [unsigned(bytes.length), bytes, kind, unsigned(index)]
}

const signature = ({ parameters }: Kernel): Code => [
  0x60,
  vector(Object.values(parameters).map((type) => [TYPE_BYTES[type]])),
  0,
]
const body = ({ locals, code }: Kernel): Code =>
  withSize([vector(locals.map((type) => [1, TYPE_BYTES[type]])), code, 0x0b])

/** A module that exports every kernel by its name, and its memory as `memory`. */
export function assemble(kernels: Readonly<Record<string, Kernel>>): Uint8Array<ArrayBuffer> {
  const all = Object.values(kernels)
  const exports = Object.keys(kernels).map((name, index) => exported(name, 0, index))
  return Uint8Array.from(
    flatten([
      MAGIC_AND_VERSION,
      section(SECTIONS.type, vector(all.map(signature))),
      section(SECTIONS.function, vector(all.map((_, index) => unsigned(index)))),
      section(SECTIONS.memory, vector([[0, 1]])),
      section(SECTIONS.export, vector([...exports, exported('memory', 2, 0)])),
      section(SECTIONS.code, vector(all.map(body))),
    ]),
  )
}
