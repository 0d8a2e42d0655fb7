/** The built-in engine by itself, as the service opens it, for scenarios that want no HTTP and no store around it. */
import { availableParallelism } from 'node:os'
import { readGraph } from '../../engine/graph/graph-json.ts'
import type { JsonValue } from '../../lib/json/lossless-json.ts'
import { silentLog } from '../../lib/log.ts'
import { openEmbeddedEngine } from '../../src/adapters/engines/embedded/engine.ts'
import type { Engine, EngineInput } from '../../src/domain/engine/engine-port.ts'

export interface BenchEngine extends AsyncDisposable {
  readonly engine: Engine
  /** Milliseconds from the call to the end of the run. Nothing of an earlier run is used again. */
  time(graph: object): Promise<number>
}

const MEMORY_LIMIT = 2_147_483_648

function toInput(name: string, localPath: string): EngineInput {
  async function* read() {}
  return { hash: name, sizeBytes: 0, contentType: 'image/png', localPath, read }
}

/** `files`: input files by name, as paths. */
export async function openBenchEngine(files: Readonly<Record<string, string>> = {}): Promise<BenchEngine> {
  const engine = await openEmbeddedEngine({
    threads: Math.max(1, availableParallelism() - 1),
    memoryLimitBytes: MEMORY_LIMIT,
    maxImagePixels: 100_000_000,
    log: silentLog,
    clock: { now: () => new Date() },
  })
  const inputs = new Map(Object.entries(files).map(([name, path]) => [name, toInput(name, path)]))
  let runs = 0
  return {
    engine,
    async time(graph) {
      const run = {
        jobId: `bench-${runs}`,
        // Results are cached per account: a new one every time makes every node run.
        accountId: `bench-${runs++}`,
        attempt: 1,
        claimId: 'bench',
        graph: readGraph(graph as JsonValue),
        inputs,
        extraData: null,
        reserveOutputNumbers: async () => 1,
      }
      const startedAt = performance.now()
      for await (const event of engine.run(run, { signal: new AbortController().signal })) {
        if (event.type === 'failed') throw new Error(`${event.failure.nodeId}: ${event.failure.message}`)
      }
      return performance.now() - startedAt
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}
