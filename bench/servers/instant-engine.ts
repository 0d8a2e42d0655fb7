/** An engine that takes no time: two steps of progress and one file of 16 KiB that nobody else has. */
import { randomBytes } from 'node:crypto'
import type { Engine } from '../../src/domain/engine/engine-port.ts'
import { BENCH_CATALOG } from './held-engine.ts'

const OUTPUT_BYTES = 16_384
const NODE = { nodeId: '2', classType: 'SaveImage', displayNodeId: '2', parentNodeId: null }

export function createInstantEngine(): Engine {
  return {
    catalog: () => BENCH_CATALOG,
    async *run({ reserveOutputNumbers }) {
      yield { type: 'started', nodesTotal: 2 } as const
      yield { type: 'node_started', ...NODE } as const
      for (const value of [1, 2]) yield { type: 'node_progress', ...NODE, value, max: 2 } as const
      const number = await reserveOutputNumbers('', 'bench', 1)
      const bytes = randomBytes(OUTPUT_BYTES)
      const file = {
        kind: 'file',
        filename: `bench_${number}_.bin`,
        subfolder: '',
        folder: 'output',
        contentType: 'application/octet-stream',
        async *read() {
          yield bytes
        },
      } as const
      yield { type: 'node_report', ...NODE, report: { images: [file] }, cached: false } as const
      yield { type: 'node_finished', ...NODE } as const
      yield { type: 'succeeded' } as const
    },
    async [Symbol.asyncDispose]() {},
  }
}
