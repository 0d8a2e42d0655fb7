/** Refuses images without exactly three channels, in the words of the library that upstream asks. */
import { NodeError } from '../../node/node-error.ts'
import type { Tensor } from '../../tensor/tensor.ts'

export function requireRgb({ shape }: Tensor): void {
  const [batch, height, width, channels] = shape
  if (channels === 3) return
  const seen = `torch.Size([${batch}, ${channels}, ${height}, ${width}])`
  throw new NodeError('ValueError', `Input size must have a shape of (*, 3, H, W). Got ${seen}`)
}
