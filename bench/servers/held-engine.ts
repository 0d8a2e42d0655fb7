/** An engine whose first run emits only the events that the bench asks for; others end at once. */

import type { NodeCatalog, NodeDefinition } from '../../engine/graph/node-catalog.ts'
import type { EngineEvent } from '../../engine/graph/run-event.ts'
import type { Engine } from '../../src/domain/engine/engine-port.ts'

export interface HeldEngine extends Engine {
  readonly started: Promise<void>
  progress(step: { readonly value: number; readonly max: number }): void
  /** Steps with a preview each, at a steady pace. Each preview begins with its number and the time it was made. */
  sample(pace: SamplePace): Promise<void>
  release(): void
}

export interface SamplePace {
  readonly steps: number
  readonly everyMs: number
  readonly previewBytes: number
}

const NODE = { nodeId: '2', classType: 'SaveImage', displayNodeId: '2', parentNodeId: null }

export function createHeldEngine(): HeldEngine {
  const start = Promise.withResolvers<void>()
  const waiting: EngineEvent[] = []
  let hasFirst = false
  let wake = Promise.withResolvers<void>()
  const say = (event: EngineEvent) => {
    waiting.push(event)
    wake.resolve()
  }
  return {
    started: start.promise,
    catalog: () => BENCH_CATALOG,
    progress: ({ value, max }) => say({ type: 'node_progress', ...NODE, value, max }),
    async sample({ steps, everyMs, previewBytes }) {
      const startedAt = Date.now()
      for (let value = 1; value <= steps; value++) {
        const bytes = Buffer.alloc(previewBytes)
        bytes.writeUInt32BE(value)
        bytes.writeDoubleBE(Date.now(), 4)
        say({ type: 'node_progress', ...NODE, value, max: steps })
        say({ type: 'preview', ...NODE, contentType: 'image/jpeg', bytes })
        const waitMs = startedAt + value * everyMs - Date.now()
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
    },
    release: () => say({ type: 'succeeded' }),
    async *run() {
      yield { type: 'started', nodesTotal: 2 } as const
      if (hasFirst) return yield { type: 'succeeded' } as const
      hasFirst = true
      yield { type: 'node_started', ...NODE } as const
      start.resolve()
      while (true) {
        await wake.promise
        wake = Promise.withResolvers()
        for (const event of waiting.splice(0)) {
          yield event
          if (event.type === 'succeeded') return
        }
      }
    },
    async [Symbol.asyncDispose]() {},
  }
}

function define(name: string, required: NodeDefinition['input']['required'], isOutput: boolean): NodeDefinition {
  return {
    input: { required },
    input_order: { required: Object.keys(required ?? {}) },
    is_input_list: false,
    output: ['IMAGE'],
    output_is_list: [false],
    output_name: ['IMAGE'],
    name,
    display_name: name,
    category: 'bench',
    output_node: isOutput,
    has_intermediate_output: false,
  }
}

const DEFINITIONS = new Map([
  ['EmptyImage', define('EmptyImage', {}, false)],
  ['SaveImage', define('SaveImage', { images: ['IMAGE'] }, true)],
])

/** The two classes of the graphs in kit/workflows.ts, taking anything. */
export const BENCH_CATALOG: NodeCatalog = {
  find: (classType) => DEFINITIONS.get(classType) ?? null,
  classTypes: () => [...DEFINITIONS.keys()],
  selfCheckedInputs: () => [],
}
