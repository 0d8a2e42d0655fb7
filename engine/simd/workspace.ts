/**
 * The kernels with the memory that they work in: one instance per thread, used by one loop over rows at a time. Tensors live
 * elsewhere, so rows are copied in and out; that costs a fraction of what it saves. Every user lays out
 * its own addresses in the memory; they mean nothing afterwards.
 */

import { NodeError } from '../node/node-error.ts'
import { assemble, type Kernel, PAGE_BYTES, type ParameterTypes } from './assemble.ts'
import * as areaRows from './kernels/area-rows.ts'
import * as filterRows from './kernels/filter-rows.ts'
import * as halfRows from './kernels/half-rows.ts'
import * as lanczosRows from './kernels/lanczos-rows.ts'
import * as mixRows from './kernels/mix-rows.ts'
import * as pngRows from './kernels/png-rows.ts'
import * as resizeRows from './kernels/resize-rows.ts'

const { sumSpans, divideSums } = areaRows
const { sumPairs, filterRow } = filterRows
const { floatsToBytes, bytesToFloats, lanczosRow, lanczosColumn } = lanczosRows
const { combineFour, gatherOne, gatherFour, gatherSquare } = resizeRows
const KERNELS = {
  ...halfRows,
  ...mixRows,
  ...pngRows,
  ...{ sumSpans, divideSums },
  ...{ sumPairs, filterRow },
  ...{ floatsToBytes, bytesToFloats, lanczosRow, lanczosColumn },
  ...{ combineFour, gatherOne, gatherFour, gatherSquare },
} as const

type NumbersOf<P extends ParameterTypes> = { readonly [Name in keyof P]: number }

/** Kernels take their parameters by position, as WebAssembly does; their names stand in the kernel's definition. */
type Kernels = {
  readonly [Name in keyof typeof KERNELS]: (typeof KERNELS)[Name] extends Kernel<infer P>
    ? (...numbers: NumbersOf<P>[keyof P][]) => void
    : never
}

export interface Workspace extends Disposable {
  readonly run: Kernels
  /** Copies values to an address of the layout. */
  load(address: number, values: Float32Array): void
  /** Copies from an address into all of `values`. */
  store(address: number, values: Float32Array): void
  readonly bytes: Uint8Array
  readonly ints: Int32Array
  readonly floats: Float32Array
}

// What a thread keeps for its next use. Only resizes of extreme proportions need more.
const KEPT_BYTES = 33_554_432
const ALIGNMENT = 64
// `set` copies shared memory word by word, or byte by byte where the two places are not aligned alike. `copy` moves it in one go,
// but uses `set` for a whole buffer: so the buffer begins a little before the values.
const BEFORE = 4

/** Hands out addresses one after the other, before the memory behind them is there. */
export class Layout {
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The address of `bytes`, with room for a step of any kernel behind them. */
  take(bytes: number): number {
    const address = this.#size
    this.#size += Math.ceil((bytes + ALIGNMENT) / ALIGNMENT) * ALIGNMENT
    return address
  }
}

interface Instance {
  readonly run: Kernels
  readonly memory: WasmMemory
}

let compiled: WasmModule | null = null
let kept: Instance | null = null

function createInstance(): Instance {
  compiled ??= new webAssembly.Module(assemble(KERNELS))
  const { memory, ...run } = new webAssembly.Instance(compiled).exports
  return { run: run as unknown as Kernels, memory: memory as WasmMemory }
}

function grow(memory: WasmMemory, bytes: number): void {
  const missing = bytes - memory.buffer.byteLength
  if (missing <= 0) return
  try {
    memory.grow(Math.ceil(missing / PAGE_BYTES))
  } catch {
    throw new NodeError('MemoryError', `not enough memory for rows of ${Math.ceil(bytes / 1_048_576)} MiB in total`)
  }
}

/** Memory for the addresses of a layout. Contents are undefined. Must be disposed of before the next one is opened. */
export function openWorkspace(layout: Layout): Workspace {
  const { run, memory } = kept ?? createInstance()
  kept = null
  grow(memory, layout.size)
  const { buffer } = memory
  const all = Buffer.from(buffer)
  const floats = new Float32Array(buffer)
  return {
    run,
    load(address, values) {
      const { buffer: from, byteOffset, byteLength } = values
      if (byteOffset < BEFORE) floats.set(values, address / Float32Array.BYTES_PER_ELEMENT)
      else Buffer.from(from, byteOffset - BEFORE, byteLength + BEFORE).copy(all, address, BEFORE)
    },
    store(address, { buffer: to, byteOffset, byteLength }) {
      all.copy(Buffer.from(to, byteOffset, byteLength), 0, address, address + byteLength)
    },
    bytes: new Uint8Array(buffer),
    ints: new Int32Array(buffer),
    floats,
    [Symbol.dispose]() {
      if (buffer.byteLength <= KEPT_BYTES) kept = { run, memory }
    },
  }
}

// The few parts of the global `WebAssembly` that are used here; the type library for servers does not describe it.

interface WasmMemory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

interface WasmModule {
  readonly [Symbol.toStringTag]: string
}

interface WebAssemblyGlobal {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule
  readonly Instance: new (module: WasmModule) => { readonly exports: Readonly<Record<string, unknown>> }
}

const webAssembly = (globalThis as unknown as { readonly WebAssembly: WebAssemblyGlobal }).WebAssembly
