/** What mask nodes share: numbers that they declare alike, and masks with their batch axis. */
import { int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { reshape } from '../../tensor/batch-axis.ts'
import type { Tensor } from '../../tensor/tensor.ts'

export const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })
export const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })
/** Where something is laid or cut. */
export const position = () => ({ x: offset(), y: offset() })

/** A mask with its batch axis: a bare plane counts as a batch of one. */
export function asMaskBatch(mask: Tensor): Tensor {
  return mask.shape.length === 3 ? mask : reshape(mask, [1, ...mask.shape])
}
