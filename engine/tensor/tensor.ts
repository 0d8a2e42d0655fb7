/**
 * The one array type of the engine: float32 over shared memory, row-major, so that it moves between threads without a
 * copy. IMAGE is [batch, height, width, channels], MASK is [batch, height, width]. A tensor is never changed once it has
 * left the node that made it: the cache and other nodes read the same memory.
 */
import type { RowJob } from './rows/row-jobs.ts'

export type SharedFloats = Float32Array<SharedArrayBuffer>

export class Tensor {
  readonly shape: readonly number[]
  readonly data: SharedFloats

  constructor(shape: readonly number[], data: SharedFloats) {
    this.shape = shape
    this.data = data
  }
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, side) => product * side, 1)
}

/** Allocates memory for a tensor. Contents are undefined (memory is reused): the caller writes every element. */
export type Allocate = (shape: readonly number[]) => Tensor

/** What a long computation on pixels needs of its surroundings. */
export interface PixelWork {
  readonly allocate: Allocate
  /** Throws when the run was cancelled. */
  checkpoint(): void
  readonly shareRows?: ShareRows
}

/** Does the work together with other threads, or answers false when it is better done alone. Absent where there are no others. */
export type ShareRows = (job: RowJob, checkpoint: () => void) => boolean

/** What reading a file needs in addition: a decoder's memory is counted before it is taken. */
export interface DecodeWork extends PixelWork {
  reserve(bytes: number, besideBytes?: number): Promise<() => void>
}

/** A picture or mask seen as planes of rows: what the pixel loops need to know. */
export interface ImageView {
  readonly batch: number
  readonly height: number
  readonly width: number
  readonly channels: number
  readonly data: SharedFloats
}

/** Images as they are; masks (rank 3) as images of one channel. */
export function viewOf(tensor: Tensor): ImageView {
  const [batch, height, width, channels = 1] = tensor.shape
  return { batch, height, width, channels, data: tensor.data }
}
