/** A mask with its batch axis: a bare plane counts as a batch of one. */
import { reshape } from '../../tensor/batch.ts'
import type { Tensor } from '../../tensor/tensor.ts'

export function asMaskBatch(mask: Tensor): Tensor {
  return mask.shape.length === 3 ? mask : reshape(mask, [1, ...mask.shape])
}
