/** Two tensors of different shapes in one computation: sides of length 1 stand for any length, as in PyTorch. */
import { NodeError } from '../node/node-error.ts'
import { inBlocks } from './map-pixels.ts'
import { elementCount, type PixelWork, type Tensor } from './tensor.ts'

/** PyTorch's refusal of two sides that differ. */
export function sizeMismatch(a: number, b: number, axis: number): NodeError {
  const message = `The size of tensor a (${a}) must match the size of tensor b (${b}) at non-singleton dimension ${axis}`
  return new NodeError('RuntimeError', message)
}

/** The shape that two shapes have together. Throws NodeError when they do not fit. */
export function broadcastShape(a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length)
  return Array.from({ length: rank }, (_, axis) => {
    const left = a[axis - rank + a.length] ?? 1
    const right = b[axis - rank + b.length] ?? 1
    if (left === right || right === 1) return left
    if (left === 1) return right
    throw sizeMismatch(left, right, axis)
  })
}

/** The tensor repeated along its sides of length 1, up to the given shape. */
export function expandTo(tensor: Tensor, shape: readonly number[], { allocate, checkpoint }: PixelWork): Tensor {
  const missing = shape.length - tensor.shape.length
  const own = shape.map((_, axis) => (axis < missing ? 1 : tensor.shape[axis - missing]))
  if (shape.every((size, axis) => size === own[axis])) return tensor
  const result = allocate(shape)
  const rowLength = shape[shape.length - 1]
  const isRepeated = own[shape.length - 1] !== rowLength
  const rows = elementCount(shape.slice(0, -1))
  for (let row = 0; row < rows; row++) {
    checkpoint()
    let rest = row
    let from = 0
    let stride = own[shape.length - 1]
    for (let axis = shape.length - 2; axis >= 0; axis--) {
      if (own[axis] !== 1) from += (rest % shape[axis]) * stride
      rest = Math.floor(rest / shape[axis])
      stride *= own[axis]
    }
    const target = result.data.subarray(row * rowLength, (row + 1) * rowLength)
    if (isRepeated) target.fill(tensor.data[from])
    else target.set(tensor.data.subarray(from, from + rowLength))
  }
  return result
}

export interface Pair {
  readonly a: Float32Array
  readonly b: Float32Array
  readonly out: Float32Array
  readonly start: number
  readonly end: number
}

/** A tensor of the common shape; `fill` writes the elements start..end-1 of it. */
export function mapPair(a: Tensor, b: Tensor, work: PixelWork, fill: (pair: Pair) => void): Tensor {
  const shape = broadcastShape(a.shape, b.shape)
  const [left, right] = [expandTo(a, shape, work), expandTo(b, shape, work)]
  const result = work.allocate(shape)
  inBlocks(result.data.length, work.checkpoint, (start, end) =>
    fill({ a: left.data, b: right.data, out: result.data, start, end }),
  )
  return result
}
