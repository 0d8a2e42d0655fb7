/** SIGMAS: the noise levels of a sampler's steps, as a plain vector. */
import type { InputOptions } from '../../graph/node-catalog.ts'
import type { InputKind } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { Tensor } from '../../tensor/tensor.ts'
import { valueTypeName } from '../../values/value.ts'

export function sigmas(options: InputOptions): InputKind<Tensor> {
  return {
    spec: ['SIGMAS', options],
    read(value, name) {
      if (!(value instanceof Tensor)) {
        throw new NodeError('AttributeError', `'${valueTypeName(value)}' object has no attribute 'shape'`)
      }
      if (value.shape.length === 1) return value
      throw new NodeError('RuntimeError', `${name}: expected 1 dimension, got a tensor of [${value.shape.join(', ')}]`)
    },
  }
}

export function toSigmas(levels: ArrayLike<number>, { allocate }: NodeContext): Tensor {
  const result = allocate([levels.length])
  result.data.set(levels)
  return result
}
