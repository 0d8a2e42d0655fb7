/** Quarter turns and mirror images. Rotation walks small squares, so that neither side misses the cache on every pixel. */
import { type PixelWork, type Tensor, viewOf } from './tensor.ts'

const SQUARE = 32

/** Where the pixel (0, 0) of a frame goes, and how far one step right or down in the source moves in the target. */
interface Course {
  readonly start: number
  readonly perColumn: number
  readonly perRow: number
}

function walk(
  source: Tensor,
  target: Tensor,
  { course, checkpoint }: { course: Course } & Pick<PixelWork, 'checkpoint'>,
) {
  const { batch, height, width, channels, data } = viewOf(source)
  const frame = height * width * channels
  const { start, perColumn, perRow } = course
  for (let index = 0; index < batch; index++) {
    const from = index * frame
    const to = from + start * channels
    for (let top = 0; top < height; top += SQUARE) {
      checkpoint()
      const bottom = Math.min(top + SQUARE, height)
      for (let left = 0; left < width; left += SQUARE) {
        const right = Math.min(left + SQUARE, width)
        for (let y = top; y < bottom; y++) {
          let at = from + (y * width + left) * channels
          let out = to + (y * perRow + left * perColumn) * channels
          for (let x = left; x < right; x++, out += perColumn * channels) {
            for (let c = 0; c < channels; c++) target.data[out + c] = data[at++]
          }
        }
      }
    }
  }
}

export type QuarterTurns = 1 | 2 | 3

/** Clockwise. */
export function rotate(image: Tensor, quarterTurns: QuarterTurns, { allocate, checkpoint }: PixelWork): Tensor {
  const [batch, height, width, channels] = image.shape
  const courses: Readonly<Record<QuarterTurns, Course>> = {
    1: { start: height - 1, perColumn: height, perRow: -1 },
    2: { start: height * width - 1, perColumn: -1, perRow: -width },
    3: { start: (width - 1) * height, perColumn: -height, perRow: 1 },
  }
  const result = allocate(quarterTurns === 2 ? image.shape : [batch, width, height, channels])
  walk(image, result, { course: courses[quarterTurns], checkpoint })
  return result
}

export function mirrorLeftRight(image: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const width = image.shape[2]
  const result = allocate(image.shape)
  walk(image, result, { course: { start: width - 1, perColumn: -1, perRow: width }, checkpoint })
  return result
}

export function mirrorUpDown(image: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const result = allocate(image.shape)
  const rowLength = width * channels
  for (let index = 0; index < batch; index++) {
    for (let y = 0; y < height; y++) {
      checkpoint()
      const from = (index * height + y) * rowLength
      result.data.set(data.subarray(from, from + rowLength), (index * height + height - 1 - y) * rowLength)
    }
  }
  return result
}
