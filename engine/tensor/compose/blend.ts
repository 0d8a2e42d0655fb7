/** Images of one size mixed value by value, in the six modes that ComfyUI's blend knows. */
import { Layout, openWorkspace } from '../../simd/workspace.ts'
import type { RowLoop, RowWork } from '../rows/row-loop.ts'

const KERNELS = {
  normal: 'blendNormal',
  multiply: 'blendMultiply',
  screen: 'blendScreen',
  overlay: 'blendOverlay',
  soft_light: 'blendSoftLight',
  difference: 'blendDifference',
} as const

export type BlendMode = keyof typeof KERNELS
export const BLEND_MODES = Object.keys(KERNELS) as readonly BlendMode[]

// Three pieces fit into the second-level cache.
const PIECE = 16_384
const FLOAT_BYTES = 4

interface Blend {
  /** As large as `out`, or one image that is used for all of its images. */
  readonly a: Float32Array
  readonly b: Float32Array
  readonly out: Float32Array
  /** Values of one image. */
  readonly size: number
  readonly mode: BlendMode
  /** The share of the mixed picture, 0 to 1; the rest is `a`. */
  readonly factor: number
}

export interface BlendJob extends Blend, RowWork {
  readonly name: 'blend'
}

/** Writes all of `out`, clipped to 0..1. What counts as a row is a piece of an image. */
export function toBlendJob(blend: Blend): BlendJob {
  const { out, size } = blend
  const rows = (out.length / size) * Math.ceil(size / PIECE)
  return { name: 'blend', ...blend, rows, leastRows: 1, values: 3 * out.length }
}

export function openBlendRows({ a, b, out, size, mode, factor }: BlendJob): RowLoop {
  const layout = new Layout()
  const [first, second, mixed] = [0, 1, 2].map(() => layout.take(PIECE * FLOAT_BYTES))
  const space = openWorkspace(layout)
  const blend = space.run[KERNELS[mode]]
  const pieces = Math.ceil(size / PIECE)
  return {
    writeRow(row) {
      const from = (row % pieces) * PIECE
      const count = Math.min(PIECE, size - from)
      const at = Math.floor(row / pieces) * size + from
      // Both are as long as the result, or one image.
      const partOf = (images: Float32Array) => {
        const start = images.length === size ? from : at
        return images.subarray(start, start + count)
      }
      space.load(first, partOf(a))
      space.load(second, partOf(b))
      blend(mixed, count * FLOAT_BYTES, first, second, factor)
      space.store(mixed, out.subarray(at, at + count))
    },
    [Symbol.dispose]: () => space[Symbol.dispose](),
  }
}
