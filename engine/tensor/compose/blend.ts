/** Two images of one shape mixed value by value, in the six modes that ComfyUI's blend knows. */
import { Layout, openWorkspace } from '../../simd/workspace.ts'
import type { PixelWork } from '../tensor.ts'

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
  readonly a: Float32Array
  readonly b: Float32Array
  readonly mode: BlendMode
  /** The share of the mixed picture, 0 to 1; the rest is `a`. */
  readonly factor: number
}

/** Writes all of `out`, clipped to 0..1. */
export function blendInto(
  out: Float32Array,
  { a, b, mode, factor }: Blend,
  { checkpoint }: Pick<PixelWork, 'checkpoint'>,
): void {
  const layout = new Layout()
  const [first, second, mixed] = [0, 1, 2].map(() => layout.take(PIECE * FLOAT_BYTES))
  using space = openWorkspace(layout)
  const { floats } = space
  const blend = space.run[KERNELS[mode]]
  for (let from = 0; from < out.length; from += PIECE) {
    checkpoint()
    const count = Math.min(PIECE, out.length - from)
    floats.set(a.subarray(from, from + count), first / FLOAT_BYTES)
    floats.set(b.subarray(from, from + count), second / FLOAT_BYTES)
    blend(mixed, count * FLOAT_BYTES, first, second, factor)
    out.set(floats.subarray(mixed / FLOAT_BYTES, mixed / FLOAT_BYTES + count), from)
  }
}
