/**
 * From kernels to a WebAssembly module: one memory, one exported function per kernel. The bytes are made when a thread first
 * needs them, so what runs is what stands in the source and there is no file to keep in step.
 */
import { type Code, type Local, unsigned, type ValueType } from './instructions.ts'

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
