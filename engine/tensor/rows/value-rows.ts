/** Every value of a tensor changed by itself, as work on rows: a row is a piece of the tensor. */
import { Layout, openWorkspace } from '../../simd/workspace.ts'
import { BYTE_TO_FLOAT, byteOf } from '../bytes.ts'
import type { RowLoop, RowWork } from './row-loop.ts'

export type ValueChange =
  /** 1 - x */
  | { readonly kind: 'invert' }
  /** x·gain + offset, held within 0..1. */
  | { readonly kind: 'adjust'; readonly gain: number; readonly offset: number }
  | { readonly kind: 'normalize'; readonly mean: number; readonly deviation: number }
  /** As 8 bit would have kept it: n/255. */
  | { readonly kind: 'through bytes' }

export interface ValueJob extends RowWork {
  readonly name: 'values'
  readonly change: ValueChange
  readonly from: Float32Array
  readonly to: Float32Array
}

type Fill = (from: Float32Array, to: Float32Array) => void
type ChangeOf<Kind> = Extract<ValueChange, { kind: Kind }>

// Two pieces fit into the second-level cache.
const PIECE = 16_384
const FLOAT_BYTES = 4

export function toValueJob(change: ValueChange, from: Float32Array, to: Float32Array): ValueJob {
  const rows = Math.ceil(from.length / PIECE)
  return { name: 'values', change, from, to, rows, leastRows: 1, values: 2 * from.length }
}

function adjust({ gain, offset }: ChangeOf<'adjust'>): Fill {
  return (from, to) => {
    for (let i = 0; i < to.length; i++) {
      const value = from[i] * gain + offset
      to[i] = value < 0 ? 0 : value > 1 ? 1 : value
    }
  }
}

function normalize({ mean, deviation }: ChangeOf<'normalize'>): Fill {
  return (from, to) => {
    for (let i = 0; i < to.length; i++) to[i] = (from[i] - mean) / deviation
  }
}

function passThroughBytes(): Fill {
  return (from, to) => {
    for (let i = 0; i < to.length; i++) to[i] = BYTE_TO_FLOAT[byteOf(from[i])]
  }
}

function invertAll(): Fill & Disposable {
  const layout = new Layout()
  const values = layout.take(PIECE * FLOAT_BYTES)
  const space = openWorkspace(layout)
  const fill: Fill = (from, to) => {
    space.load(values, from)
    space.run.invert(values, values + from.byteLength)
    space.store(values, to)
  }
  return Object.assign(fill, { [Symbol.dispose]: () => space[Symbol.dispose]() })
}

const FILLS: { readonly [Kind in ValueChange['kind']]: (change: ChangeOf<Kind>) => Fill & Partial<Disposable> } = {
  invert: invertAll,
  adjust,
  normalize,
  'through bytes': passThroughBytes,
}

export function openValueRows({ change, from, to }: ValueJob): RowLoop {
  const fill = (FILLS[change.kind] as (change: ValueChange) => Fill & Partial<Disposable>)(change)
  return {
    writeRow(row) {
      const [start, end] = [row * PIECE, (row + 1) * PIECE]
      fill(from.subarray(start, end), to.subarray(start, end))
    },
    [Symbol.dispose]: () => fill[Symbol.dispose]?.(),
  }
}
