/**
 * The first axis of a tensor: parts of it, joins and repetitions. A part is a view on the same memory, since its elements
 * lie side by side and tensors never change.
 */
import { NodeError, refuseLongList } from '../node/node-error.ts'
import { inBlocks } from './channels.ts'
import { elementCount, type PixelWork, type SharedFloats, Tensor } from './tensor.ts'

/** Elements per member of the batch. */
function memberSize(tensor: Tensor): number {
  return elementCount(tensor.shape.slice(1))
}

/** `count` members from `start` on, without a copy. */
export function sliceBatch(tensor: Tensor, start: number, count: number): Tensor {
  const size = memberSize(tensor)
  return new Tensor([count, ...tensor.shape.slice(1)], tensor.data.subarray(start * size, (start + count) * size))
}

/** Every member of every batch as a batch of one. Throws NodeError for more than a list may have. */
export function splitBatches(tensors: readonly Tensor[]): Tensor[] {
  refuseLongList(tensors.reduce((sum, { shape }) => sum + shape[0], 0))
  return tensors.flatMap((tensor) =>
    Array.from({ length: tensor.shape[0] }, (_, index) => sliceBatch(tensor, index, 1)),
  )
}

/** The same elements under another shape. */
export function reshape(tensor: Tensor, shape: readonly number[]): Tensor {
  return new Tensor(shape, tensor.data)
}

/** Copies memory in pieces, so that a cancel is noticed between them. */
export function copyInto(target: SharedFloats, at: number, source: Float32Array, checkpoint: () => void): void {
  inBlocks(source.length, checkpoint, (from, to) => target.set(source.subarray(from, to), at + from))
}

function refuseUnlike(tensors: readonly Tensor[], axis: number): void {
  const [first] = tensors
  tensors.forEach(({ shape }, index) => {
    if (shape.length !== first.shape.length) {
      const message = `Tensors must have same number of dimensions: got ${first.shape.length} and ${shape.length}`
      throw new NodeError('RuntimeError', message)
    }
    const unlike = shape.findIndex((size, at) => at !== axis && size !== first.shape[at])
    if (unlike < 0) return
    const message =
      `Sizes of tensors must match except in dimension ${axis}. ` +
      `Expected size ${first.shape[unlike]} but got size ${shape[unlike]} for tensor number ${index} in the list.`
    throw new NodeError('RuntimeError', message)
  })
}

/** Joins tensors along one axis; all other sides must be the same. */
export function concatenate(
  tensors: readonly Tensor[],
  { allocate, checkpoint }: PixelWork,
  { axis }: { readonly axis: number } = { axis: 0 },
): Tensor {
  refuseUnlike(tensors, axis)
  if (tensors.length === 1) return tensors[0]
  const { shape } = tensors[0]
  const total = tensors.reduce((sum, tensor) => sum + tensor.shape[axis], 0)
  const result = allocate(shape.map((size, at) => (at === axis ? total : size)))
  const outer = elementCount(shape.slice(0, axis))
  const inner = elementCount(shape.slice(axis + 1))
  let offset = 0
  for (const { shape: own, data } of tensors) {
    const length = own[axis] * inner
    for (let index = 0; index < outer; index++) {
      const at = index * total * inner + offset
      copyInto(result.data, at, data.subarray(index * length, (index + 1) * length), checkpoint)
    }
    offset += length
  }
  return result
}

/** The batch once after the other, `times` times. */
export function repeatBatch(tensor: Tensor, times: number, { allocate, checkpoint }: PixelWork): Tensor {
  if (times === 1) return tensor
  const result = allocate([tensor.shape[0] * times, ...tensor.shape.slice(1)])
  for (let index = 0; index < times; index++) {
    copyInto(result.data, index * tensor.data.length, tensor.data, checkpoint)
  }
  return result
}

/** A batch of exactly `count` members: cut when there are more, repeated from the start when there are fewer. */
export function fitBatch(tensor: Tensor, count: number, work: PixelWork): Tensor {
  const given = tensor.shape[0]
  if (given === count) return tensor
  if (given > count) return sliceBatch(tensor, 0, count)
  if (given === 0) throw new NodeError('ZeroDivisionError', 'division by zero')
  return sliceBatch(repeatBatch(tensor, Math.ceil(count / given), work), 0, count)
}

/** A part of one axis, as a copy (or a view where the part is in one piece). */
export function narrow(
  tensor: Tensor,
  { axis, start, count }: { readonly axis: number; readonly start: number; readonly count: number },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const { shape, data } = tensor
  if (start === 0 && count === shape[axis]) return tensor
  if (axis === 0) return sliceBatch(tensor, start, count)
  const result = allocate(shape.map((size, at) => (at === axis ? count : size)))
  const outer = elementCount(shape.slice(0, axis))
  const inner = elementCount(shape.slice(axis + 1))
  for (let index = 0; index < outer; index++) {
    checkpoint()
    const from = (index * shape[axis] + start) * inner
    result.data.set(data.subarray(from, from + count * inner), index * count * inner)
  }
  return result
}

// Two tensors of different shapes in one computation: sides of length 1 stand for any length, as in PyTorch.

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
