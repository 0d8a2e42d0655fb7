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

// A batch of images with smaller ones laid over them, through masks or whole, as work on rows.

interface Images {
  readonly batch: number
  readonly height: number
  readonly width: number
  readonly channels: number
  readonly data: Float32Array
}

interface Composite {
  readonly destination: Images
  /** Of as many channels. Images and masks repeat from their start where there are fewer of them. */
  readonly source: Images
  /** One value per pixel of the source; null lays it over whole. */
  readonly mask: Images | null
  /** In the shape of the destination. */
  readonly out: Float32Array
  /** Where the source's first pixel goes; not negative. What lies outside the destination is left out. */
  readonly x: number
  readonly y: number
}

export interface CompositeJob extends Composite, RowWork {
  readonly name: 'composite'
}

export function toCompositeJob(composite: Composite): CompositeJob {
  const { destination, source, out } = composite
  const values = 2 * out.length + source.data.length
  return { name: 'composite', ...composite, rows: destination.batch * destination.height, leastRows: 4, values }
}

/** target = source * weight + target * (1 - weight), one weight for all channels of a pixel. */
export function mixRow(
  target: Float32Array,
  source: Float32Array,
  { weights, channels }: { readonly weights: Float32Array; readonly channels: number },
): void {
  for (let pixel = 0, at = 0; pixel < weights.length; pixel++) {
    const weight = weights[pixel]
    const rest = 1 - weight
    for (const end = at + channels; at < end; at++) target[at] = source[at] * weight + target[at] * rest
  }
}

export function openCompositeRows({ destination, source, mask, out, x, y }: CompositeJob): RowLoop {
  const { height, width, channels } = destination
  const count = Math.min(source.width, width - x)
  return {
    writeRow(row) {
      const [image, line] = [Math.floor(row / height), (row % height) - y]
      const start = row * width * channels
      out.set(destination.data.subarray(start, start + width * channels), start)
      if (count <= 0 || line < 0 || line >= source.height) return
      const at = start + x * channels
      const target = out.subarray(at, at + count * channels)
      const from = ((image % source.batch) * source.height + line) * source.width * channels
      const above = source.data.subarray(from, from + count * channels)
      if (mask === null) {
        target.set(above)
        return
      }
      const first = ((image % mask.batch) * mask.height + line) * mask.width
      mixRow(target, above, { weights: mask.data.subarray(first, first + count), channels })
    },
    [Symbol.dispose]() {},
  }
}
