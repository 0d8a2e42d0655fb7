/** Runs a graph on a server for what it leaves loaded there. Nothing of it is kept, and it belongs to no account. */
import { randomUUID } from 'node:crypto'
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { Engine } from '../engine-port.ts'

// No account can have this id.
const NOBODY = '$warm'

/** Throws what went wrong. */
export async function warmUp(engine: Pick<Engine, 'run'>, graph: Graph, signal: AbortSignal): Promise<void> {
  const run = {
    ...{ jobId: randomUUID(), accountId: NOBODY, attempt: 1, claimId: randomUUID() },
    ...{ graph, inputs: new Map(), extraData: null, reserveOutputNumbers: async () => 1 },
  }
  let last: EngineEvent | null = null
  for await (const event of engine.run(run, { signal })) {
    last = event
    if (event.type !== 'node_report') continue
    for (const item of Object.values(event.report).flat()) if (item.kind === 'file') item.release?.()
  }
  if (last?.type === 'failed') throw new Error(last.failure.message)
  if (last?.type !== 'succeeded') throw new Error('it was interrupted')
}
