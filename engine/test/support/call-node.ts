/** One call of one node without an engine around it: for tests of what a node computes. Fresh memory is full of NaN. */
import type { EngineNode } from '../../node/define-node.ts'
import { readInputs } from '../../node/node-call.ts'
import { type CallResult, GraphBuilder, type NodeContext } from '../../node/node-context.ts'
import { Interrupted } from '../../node/node-error.ts'
import { elementCount, type PixelWork, Tensor } from '../../tensor/tensor.ts'
import { Blocker, type Value } from '../../values/value.ts'

/** A tensor of the given values, or of what a function says for every index. */
export function tensor(shape: readonly number[], values: readonly number[] | ((index: number) => number)): Tensor {
  const data = new Float32Array(new SharedArrayBuffer(elementCount(shape) * Float32Array.BYTES_PER_ELEMENT))
  data.forEach((_, index) => {
    data[index] = typeof values === 'function' ? values(index) : values[index]
  })
  return new Tensor(shape, data)
}

/** What pixel kernels need. A checkpoint after the last allowed one throws as if the run were cancelled. */
export function pixelWork(allowedCheckpoints = Number.POSITIVE_INFINITY): PixelWork {
  let left = allowedCheckpoints
  return {
    allocate: (shape) => tensor(shape, () => Number.NaN),
    checkpoint() {
      if (left-- <= 0) throw new Interrupted()
    },
  }
}

export interface CallSettings {
  readonly allowedCheckpoints?: number
  readonly texts?: string[]
}

export async function callNode(
  node: EngineNode,
  inputs: Readonly<Record<string, Value>>,
  { allowedCheckpoints, texts = [] }: CallSettings = {},
): Promise<CallResult & { readonly outputs: readonly Value[] }> {
  const work = pixelWork(allowedCheckpoints)
  const context: NodeContext = {
    ...work,
    reserve: async () => () => {},
    nodeId: '1',
    progress: work.checkpoint,
    preview() {},
    log() {},
    text: (text) => void texts.push(text),
    files: { find: () => null, list: () => [] },
    reserveNumbers: async () => 1,
    runModel: null,
    hidden: { prompt: () => ({}), extraPngInfo: () => null },
    instanceLetters: 'abcde',
    maxImagePixels: 1_000_000,
    now: new Date(0),
    newGraph: () => new GraphBuilder('1.0.0.'),
  }
  const result = await node.run(readInputs(node, inputs), context)
  if (result.outputs instanceof Blocker) throw new Error('the node blocked')
  return { ...result, outputs: result.outputs }
}

/** The first output, which must be a tensor. */
export async function tensorFrom(
  node: EngineNode,
  inputs: Readonly<Record<string, Value>>,
  settings?: CallSettings,
): Promise<Tensor> {
  const [output] = (await callNode(node, inputs, settings)).outputs
  if (!(output instanceof Tensor)) throw new Error('the node returned no tensor')
  return output
}
