/**
 * The built-in engine seen from the main thread: an Engine that does all its work elsewhere. Here, runs become messages,
 * events become an iterator, and an abort becomes one word of shared memory. When the engine thread is lost, the run that it was
 * working on fails, the others throw (the attempt is lost, not the job), and a new thread takes its place.
 */

import type { Clock } from '../lib/clock.ts'
import type { JsonValue } from '../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../lib/json/write-json-steps.ts'
import type { Log } from '../lib/log.ts'
import { createTurns, type Turns } from '../lib/turns.ts'
import type { Engine, EngineRun, RunOptions } from '../src/domain/engine/engine-port.ts'
import type { RunModel } from '../src/domain/engine/model-port.ts'
import { createCatalog } from './catalog.ts'
import { type CustomNodes, NO_CUSTOM_NODES } from './custom/custom-nodes.ts'
import { describeModules } from './custom/describe-modules.ts'
import { openInputFiles } from './files/input-files.ts'
import type { NodeCatalog } from './graph/node-catalog.ts'
import type { EngineEvent } from './graph/run-event.ts'
import { writeGraph } from './graph/write-graph.ts'
import type { ValueLimits } from './run/value-budget.ts'
import { openEngineThread } from './threads/engine-thread-link.ts'
import { loadNodes } from './threads/load-nodes.ts'

export interface CustomNodeOptions {
  /** Absolute paths; every module directly inside is loaded. */
  readonly folders: readonly string[]
  /** The longest time that one call of a custom node may take. */
  readonly timeoutMs: number
  /** JavaScript's memory in each of their threads. */
  readonly heapBytes?: number
  /** How long all modules together may take to load. */
  readonly loadTimeoutMs?: number
}

const NODE_HEAP_BYTES = 536_870_912
const NODE_LOAD_TIMEOUT_MS = 60_000
const NODE_TIMEOUT_MS = 600_000
const NO_NODE_FOLDERS: CustomNodeOptions = { folders: [], timeoutMs: NODE_TIMEOUT_MS }
const VALUE_LIMITS: ValueLimits = { totalBytes: 268_435_456, runBytes: 134_217_728 }

export interface EmbeddedEngineOptions {
  /** How many compute threads run heavy nodes. */
  readonly threads: number
  /** What tensors of all runs and of the cache may occupy together. */
  readonly memoryLimitBytes: number
  /** Of that, what one run may have at a time; all of it unless said otherwise. */
  readonly runMemoryBytes?: number
  /** What texts, lists and numbers may occupy: of all runs together, and of each. */
  readonly values?: ValueLimits
  /** The longest time that one call of a built-in node may take. */
  readonly nodeTimeoutMs?: number
  /** Of the threads and of the programs that nodes start; absent: ours. */
  readonly environment?: NodeJS.ProcessEnv
  /** The largest picture that is decoded, all frames of an animation together. */
  readonly maxImagePixels: number
  readonly log: Log
  readonly clock: Clock
  /** Modules (file URLs) that export further node classes as `nodes`. */
  readonly nodeModules?: readonly string[]
  /** Nodes of the user's own. */
  readonly customNodes?: CustomNodeOptions
  /** Runs a partner model for a node; without it such a node fails and says why. */
  readonly runModel?: RunModel
  /** Letters of preview names in the order in which they are given out; random ones after them. */
  readonly letters?: readonly string[]
}

async function toExtraPngInfoText(extraData: EngineRun['extraData'], turns: Turns): Promise<string | null> {
  const info = extraData?.extra_pnginfo
  // Of `extra_data` only this part may reach a node: the rest are credentials.
  return info === undefined || info === null ? null : turns.run(writeJsonSteps(info as JsonValue))
}

type NodeOptions = Pick<EmbeddedEngineOptions, 'nodeModules' | 'customNodes' | 'log'>

/** What an engine with these nodes could run, without one. Throws NodeModuleError. */
export async function readEmbeddedCatalog(options: NodeOptions): Promise<NodeCatalog> {
  const { declarations } = await findCustomNodes(options)
  return createCatalog(await loadNodes(options.nodeModules ?? [], declarations))
}

async function findCustomNodes({ nodeModules = [], customNodes, log }: NodeOptions): Promise<CustomNodes> {
  const { folders, loadTimeoutMs = NODE_LOAD_TIMEOUT_MS } = customNodes ?? NO_NODE_FOLDERS
  if (folders.length === 0) return NO_CUSTOM_NODES
  const taken = await loadNodes(nodeModules)
  const nodes = await describeModules(folders, { isTaken: (classType) => taken.has(classType), loadTimeoutMs })
  log.info({ classes: nodes.declarations.map(({ classType }) => classType) }, 'custom nodes are loaded')
  return nodes
}

/** Throws NodeModuleError when a custom node cannot be loaded. */
export async function openEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const { threads, memoryLimitBytes, maxImagePixels, log, clock, nodeModules = [], letters = null } = options
  const nodes = await findCustomNodes(options)
  const catalog = createCatalog(await loadNodes(nodeModules, nodes.declarations))
  const { timeoutMs, heapBytes = NODE_HEAP_BYTES } = options.customNodes ?? NO_NODE_FOLDERS
  const custom = { nodes, limits: { timeoutMs, heapBytes, bufferBytes: memoryLimitBytes } }
  const data = {
    threads,
    memoryLimitBytes,
    runMemoryBytes: options.runMemoryBytes ?? memoryLimitBytes,
    values: options.values ?? VALUE_LIMITS,
    nodeTimeoutMs: options.nodeTimeoutMs ?? NODE_TIMEOUT_MS,
    maxImagePixels,
    nodeModules,
    custom,
    letters,
  }
  const thread = await openEngineThread({ data, environment: options.environment, log })
  const turns = createTurns()

  async function* run(engineRun: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent, void, undefined> {
    const { accountId, jobId, graph, graphText, inputs, extraData, reserveOutputNumbers } = engineRun
    const { runModel } = options
    await using opened = await openInputFiles(inputs, signal).catch((error) => {
      if (!signal.aborted) throw error
      return null
    })
    if (opened === null) {
      yield { type: 'started', nodesTotal: graph.size }
      yield { type: 'interrupted' }
      return
    }
    const extraPngInfoText = await toExtraPngInfoText(extraData, turns)
    yield* thread.run({
      accountId,
      graphText: graphText ?? writeGraph(graph),
      extraPngInfoText,
      files: opened.files,
      nowMs: clock.now().getTime(),
      reserveOutputNumbers: (folder, prefix, count) => reserveOutputNumbers(folder, prefix, count),
      runModel: runModel
        ? (call, { signal: over }) => runModel({ accountId, jobId, extraData, ...call }, { signal: over })
        : null,
      signal,
    })
  }

  return {
    catalog: () => catalog,
    run,
    [Symbol.asyncDispose]: () => thread.close(),
  }
}
