/**
 * The built-in engine seen from the main thread: an Engine that does all its work elsewhere. Here, runs become messages,
 * events become an iterator, and an abort becomes one word of shared memory. When the engine thread is lost, the runs on
 * it throw (the attempt is lost, not the job) and a new thread takes its place.
 */
import type { Engine, EngineRun, RunOptions } from '../../../domain/engine/engine.ts'
import type { EngineEvent } from '../../../domain/engine/engine-event.ts'
import { writeGraph } from '../../../domain/workflows/write-graph.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { type JsonValue, stringifyLosslessJson } from '../../../lib/lossless-json.ts'
import { createCatalog } from './catalog.ts'
import { openInputFiles } from './files/input-files.ts'
import { openEngineThread } from './threads/engine-thread-link.ts'
import { loadNodes } from './threads/load-nodes.ts'

export interface EmbeddedEngineOptions {
  /** How many compute threads run heavy nodes. */
  readonly threads: number
  /** What tensors of all runs and of the cache may occupy together. */
  readonly memoryLimitBytes: number
  /** The largest picture that is decoded, all frames of an animation together. */
  readonly maxImagePixels: number
  readonly log: Log
  readonly clock: Clock
  /** Modules (file URLs) that export further node classes as `nodes`. */
  readonly nodeModules?: readonly string[]
  /** Letters of preview names in the order in which they are given out; random ones after them. */
  readonly letters?: readonly string[]
}

function toExtraPngInfoText(extraData: EngineRun['extraData']): string | null {
  const info = extraData?.extra_pnginfo
  // Of `extra_data` only this part may reach a node: the rest are credentials.
  return info === undefined || info === null ? null : stringifyLosslessJson(info as JsonValue)
}

export async function openEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const { threads, memoryLimitBytes, maxImagePixels, log, clock, nodeModules = [], letters = null } = options
  const catalog = createCatalog(await loadNodes(nodeModules))
  const data = { threads, memoryLimitBytes, maxImagePixels, nodeModules, letters }
  const thread = await openEngineThread({ data, log })

  async function* run(engineRun: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent, void, undefined> {
    const { accountId, graph, inputs, extraData, reserveOutputNumbers } = engineRun
    await using opened = await openInputFiles(inputs, signal).catch((error) => {
      if (!signal.aborted) throw error
      return null
    })
    if (opened === null) {
      yield { type: 'started', nodesTotal: graph.size }
      yield { type: 'interrupted' }
      return
    }
    yield* thread.run({
      accountId,
      graphText: writeGraph(graph),
      extraPngInfoText: toExtraPngInfoText(extraData),
      files: opened.files,
      nowMs: clock.now().getTime(),
      reserveOutputNumbers: (folder, prefix, count) => reserveOutputNumbers(folder, prefix, count),
      signal,
    })
  }

  return {
    catalog: () => catalog,
    run,
    [Symbol.asyncDispose]: () => thread.close(),
  }
}
