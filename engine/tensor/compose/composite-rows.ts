/** A batch of images with smaller ones laid over them, through masks or whole, as work on rows. */
import type { RowLoop, RowWork } from '../rows/row-loop.ts'

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
