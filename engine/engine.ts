/**
 * The engine seen from the thread that opened it; all the work is done elsewhere. Here, runs become messages, events become an
 * iterator, and an abort becomes one word of shared memory. When the engine thread is lost, the run that it was working on
 * fails, the others throw (they may be run again), and a new thread takes its place.
 */

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, systemClock } from '../lib/clock.ts'
import { describeSharp } from '../lib/files/load-sharp.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../lib/json/lossless-json.ts'
import { writeJsonSteps } from '../lib/json/write-json-steps.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { createTurns, type Turns } from '../lib/waiting/turns.ts'
import { type CustomNodes, NO_CUSTOM_NODES } from './custom/custom-nodes.ts'
import { describeModules } from './custom/describe-modules.ts'
import {
  findInputs,
  type GivenInput,
  type GivenInputs,
  type InputSource,
  openInputFiles,
  toSource,
} from './files/input-files.ts'
import { createFileCheck, findFileNames } from './graph/file-inputs.ts'
import { type Graph, GraphError } from './graph/graph.ts'
import { readGraphSteps, writeGraph, writeGraphSteps } from './graph/graph-json.ts'
import type { NodeCatalog } from './graph/node-catalog.ts'
import { replaceClasses } from './graph/replace-classes.ts'
import type { EngineEvent } from './graph/run-event.ts'
import { toGraphError, validateSteps } from './graph/validate/validate.ts'
import { createCatalog } from './node/define-node.ts'
import type { ValueLimits } from './node/node-call.ts'
import { NAME_INPUTS, REPEATABLE } from './nodes/built-in.ts'
import { EngineThreadLink, type ReserveOutputNumbers } from './threads/engine-thread-link.ts'
import { loadNodes } from './threads/load-nodes.ts'
import type { RunModel } from './threads/model-line.ts'

// A name for everything that the bytes of a result depend on beside the graph and its files: the code of the engine, the libraries
// that it calls, and the processor. Two engines with the same name give the same bytes; with another name they may not.

const home = path.dirname(fileURLToPath(new URL('.', import.meta.url)))
const SOURCES = ['engine', 'lib']
const IS_CODE = /\.[jt]s$/
const IS_NO_PART = /(?:^|[/\\])test[/\\]|\.test\.[jt]s$|\.d\.ts$/

/** A digest of the code, put in by the build of the program (scripts/bundle-program.ts): a start would read 350 files for it. */
declare const ENGINE_CODE: string | undefined

async function readEngineBuild(): Promise<string> {
  const { node, v8, zlib } = process.versions
  const surroundings = { node, v8, zlib, sharp: describeSharp(), cpu: cpus()[0]?.model ?? '', arch: process.arch }
  const code = typeof ENGINE_CODE === 'string' ? ENGINE_CODE : await digestEngineCode()
  return createHash('sha256').update(JSON.stringify(surroundings)).update(code).digest('base64url')
}

async function digestEngineCode(): Promise<string> {
  const hash = createHash('sha256')
  for (const file of await findSources()) {
    const bytes = await readFile(path.join(home, file))
    hash.update(`\0${file}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('base64url')
}

async function findSources(): Promise<string[]> {
  const found = await Promise.all(
    SOURCES.map(async (folder) =>
      (await readdir(path.join(home, folder), { recursive: true }))
        .filter((name) => IS_CODE.test(name) && !IS_NO_PART.test(name))
        .map((name) => path.join(folder, name)),
    ),
  )
  return found.flat().sort()
}

export interface CustomNodeOptions {
  /** Absolute paths; every module directly inside is loaded. */
  readonly folders: readonly string[]
  /** The longest time that one call of a custom node may take; 10 minutes unless said otherwise. */
  readonly timeoutMs?: number
  /** JavaScript's memory in each of their threads. */
  readonly heapBytes?: number
  /** How long all modules together may take to load. */
  readonly loadTimeoutMs?: number
}

const NODE_HEAP_BYTES = 536_870_912
const NODE_LOAD_TIMEOUT_MS = 60_000
const NODE_TIMEOUT_MS = 600_000
const NO_NODE_FOLDERS: CustomNodeOptions = { folders: [] }
const VALUE_LIMITS: ValueLimits = { totalBytes: 268_435_456, runBytes: 134_217_728 }
// Half of the machine is left to others; 8 GiB hold any graph that is worth running on a processor.
const MAX_DEFAULT_MEMORY_BYTES = 8 * 2 ** 30
// A service at rest is small again within minutes; to start the engine again takes less than a second.
const REST_MS = 120_000
const MAX_IMAGE_PIXELS = 268_435_456 // 16384 × 16384

export interface EngineOptions {
  /** How many compute threads run heavy nodes; one fewer than there are processors unless said otherwise. */
  readonly threads?: number
  /** How many cores the work on one large picture may use while others are idle; all unless said otherwise. */
  readonly cores?: number
  /** What tensors of all runs and of the cache may occupy together; half of the machine, at most 8 GiB, unless said otherwise. */
  readonly memoryLimitBytes?: number
  /** Of that, what one run may have at a time; all of it unless said otherwise. */
  readonly runMemoryBytes?: number
  /** What texts, lists and numbers may occupy: of all runs together, and of each. */
  readonly values?: ValueLimits
  /** The longest time that one call of a built-in node may take; 10 minutes unless said otherwise. */
  readonly nodeTimeoutMs?: number
  /** Of the threads and of the programs that nodes start; absent: that of this process. */
  readonly environment?: NodeJS.ProcessEnv
  /** The largest picture that is decoded, all frames of an animation together; 16384 × 16384 unless said otherwise. */
  readonly maxImagePixels?: number
  /** How long its threads and the results of earlier runs are kept after the last run; two minutes unless said otherwise. */
  readonly restMs?: number
  /** Absent: nothing is logged. */
  readonly log?: Log
  readonly clock?: Clock
  /** Modules (file URLs) that export further node classes as `nodes`. */
  readonly nodeModules?: readonly string[]
  /** Nodes of the user's own. */
  readonly customNodes?: CustomNodeOptions
  /** Letters of preview names in the order in which they are given out; random ones after them. */
  readonly letters?: readonly string[]
}

export interface RunOptions {
  /** Aborted to interrupt the run: it ends with `interrupted`, or with whatever it reached first. */
  readonly signal?: AbortSignal
  /** Input files by the name that stands in the graph: paths or bytes. They win over files of `inputFolder`. */
  readonly inputs?: ReadonlyMap<string, GivenInput> | Readonly<Record<string, GivenInput>>
  /** Where files that the graph names are looked for. A name that leads out of it (`..`, an absolute path) names no file. */
  readonly inputFolder?: string
  /** Results and names of previews are shared only among runs of one owner. */
  readonly owner?: string
  /** What SaveImage writes into its files beside the graph: an object, each member of which becomes a text of its own. */
  readonly extraPngInfo?: JsonValue
  /** Absent: counted from one, for as long as the engine lives. */
  readonly reserveOutputNumbers?: ReserveOutputNumbers
  /** Runs a model for a node; without it such a node fails and says why. */
  readonly runModel?: RunModel
}

export interface Engine extends AsyncDisposable {
  /** What this engine can run; cheap, from memory. */
  catalog(): NodeCatalog
  /**
   * Validates the graph, runs it and yields what happens: `started` first, then exactly one of `succeeded`, `failed` and
   * `interrupted` last. Leaving the loop early ends the run. Any number of runs may go on at once.
   *
   * Throws GraphError, before the first event, when the graph cannot be run; nothing of it has run then. Any error of any node
   * refuses the whole graph. Throws EngineThreadLostError when another run took the thread of the engine down.
   */
  run(graph: GraphSource | CheckedGraph, options?: RunOptions): AsyncGenerator<EngineEvent, void, undefined>
  /** What its process occupies, read a few times a second; 0 while there is none. */
  memoryBytes(): number
  /** Ends every run and its process. Closing twice is harmless. */
  close(): Promise<void>
}

type NodeOptions = Pick<EngineOptions, 'nodeModules' | 'customNodes' | 'log'>

/** What an engine with these nodes could run, without one. Throws NodeModuleError. */
export async function readCatalog(options: NodeOptions): Promise<NodeCatalog> {
  const { declarations } = await findCustomNodes(options)
  return createCatalog(await loadNodes(options.nodeModules ?? [], declarations))
}

async function findCustomNodes({ nodeModules = [], customNodes, log = silentLog }: NodeOptions): Promise<CustomNodes> {
  const { folders, loadTimeoutMs = NODE_LOAD_TIMEOUT_MS } = customNodes ?? NO_NODE_FOLDERS
  if (folders.length === 0) return NO_CUSTOM_NODES
  const taken = await loadNodes(nodeModules)
  const nodes = await describeModules(folders, { isTaken: (classType) => taken.has(classType), loadTimeoutMs })
  log.info({ classes: nodes.declarations.map(({ classType }) => classType) }, 'custom nodes are loaded')
  return nodes
}

/** Throws NodeModuleError when a custom node cannot be loaded. */
export async function openEngine(options: EngineOptions = {}): Promise<Engine> {
  const { log = silentLog, clock = systemClock, nodeModules = [] } = options
  const nodes = await findCustomNodes(options)
  const table = await loadNodes(nodeModules, nodes.declarations)
  const data = toThreadData(options, nodes)
  const { environment, restMs = REST_MS } = options
  const thread = new EngineThreadLink({ data, environment, restMs, log })
  // Where its files cannot be read, nothing is promised of its results.
  const build = await readEngineBuild().catch(() => null)
  const catalog = createCatalog(table, {
    ...(build !== null && { build }),
    repeatable: REPEATABLE,
    nameInputs: NAME_INPUTS,
  })
  const turns = createTurns()
  const countOutputs = createOutputNumbers()

  function prepare(source: GraphSource | CheckedGraph, runOptions: RunOptions): Promise<ReadyGraph> {
    const given = toGivenInputs(runOptions)
    if (source instanceof CheckedGraph) return withAllInputs(source, given)
    return checkGraph(source, { catalog, given, turns })
  }

  async function* run(source: GraphSource | CheckedGraph, runOptions: RunOptions = {}): ReturnType<Engine['run']> {
    const { signal = new AbortController().signal, owner = 'local' } = runOptions
    const { checked, inputs } = await prepare(source, runOptions)
    const { graph, text } = checked
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
      owner,
      graphText: text,
      extraPngInfoText: await toExtraPngInfoText(runOptions.extraPngInfo, turns),
      files: opened.files,
      nowMs: clock.now().getTime(),
      reserveOutputNumbers: runOptions.reserveOutputNumbers ?? countOutputs,
      runModel: runOptions.runModel ?? null,
      signal,
    })
  }

  return {
    catalog: () => catalog,
    run,
    memoryBytes: () => thread.memoryBytes(),
    close: () => thread.close(),
    [Symbol.asyncDispose]: () => thread.close(),
  }
}

function toGivenInputs({ inputs = {}, inputFolder }: RunOptions): GivenInputs {
  const files = inputs instanceof Map ? (inputs as ReadonlyMap<string, GivenInput>) : new Map(Object.entries(inputs))
  return { files, folder: inputFolder ?? null }
}

/** Whoever has checked a graph knows which files it needs. */
async function withAllInputs(checked: CheckedGraph, { files }: GivenInputs): Promise<ReadyGraph> {
  const sources = Array.from(files, async ([name, file]) => [name, await toSource(file)] as const)
  return { checked, inputs: new Map(await Promise.all(sources)) }
}

function toThreadData(
  options: EngineOptions,
  nodes: CustomNodes,
): ConstructorParameters<typeof EngineThreadLink>[0]['data'] {
  const memoryLimitBytes = options.memoryLimitBytes ?? Math.min(Math.floor(totalmem() / 2), MAX_DEFAULT_MEMORY_BYTES)
  const { timeoutMs = NODE_TIMEOUT_MS, heapBytes = NODE_HEAP_BYTES } = options.customNodes ?? NO_NODE_FOLDERS
  return {
    threads: options.threads ?? Math.max(1, availableParallelism() - 1),
    cores: options.cores ?? availableParallelism(),
    memoryLimitBytes,
    runMemoryBytes: options.runMemoryBytes ?? memoryLimitBytes,
    values: options.values ?? VALUE_LIMITS,
    nodeTimeoutMs: options.nodeTimeoutMs ?? NODE_TIMEOUT_MS,
    maxImagePixels: options.maxImagePixels ?? MAX_IMAGE_PIXELS,
    nodeModules: options.nodeModules ?? [],
    custom: { nodes, limits: { timeoutMs, heapBytes, bufferBytes: memoryLimitBytes } },
    letters: options.letters ?? null,
  }
}

async function toExtraPngInfoText(info: JsonValue | undefined, turns: Turns): Promise<string | null> {
  return info === undefined || info === null ? null : turns.run(writeJsonSteps(info))
}

function createOutputNumbers(): ReserveOutputNumbers {
  const next = new Map<string, number>()
  return async (folder, prefix, count) => {
    const name = `${folder}/${prefix}`
    const first = next.get(name) ?? 1
    next.set(name, first + count)
    return first
  }
}

// From whatever a caller calls a graph to one that this engine can run, with the files that it names.

/** A graph that was validated against the catalog of the engine: it is run as it is. */
export class CheckedGraph {
  readonly graph: Graph
  /** The same as JSON text. */
  readonly text: string

  constructor(graph: Graph, text: string = writeGraph(graph)) {
    this.graph = graph
    this.text = text
  }
}

/**
 * A graph in ComfyUI's API format: JSON text, the same as an object (node ids to `{ class_type, inputs }`), or a graph that was
 * read before. Only text keeps every digit of a number, such as a seed above 2^53 or the point of `1.0`.
 */
export type GraphSource = string | Graph | { readonly [nodeId: string]: unknown }

interface CheckOptions {
  readonly catalog: NodeCatalog
  readonly given: GivenInputs
  readonly turns: Turns
}

interface ReadyGraph {
  readonly checked: CheckedGraph
  readonly inputs: ReadonlyMap<string, InputSource>
}

/** Throws GraphError. */
async function checkGraph(source: GraphSource, { catalog, given, turns }: CheckOptions): Promise<ReadyGraph> {
  const read = isGraph(source) ? source : await turns.run(readGraphSteps(readJson(source)))
  const submitted = replaceClasses(read, catalog)
  const named = findFileNames(submitted, catalog)
  const { sources, folders } = await findInputs(named, given)
  const checkInput = createFileCheck(named, {
    hasFile: (name) => sources.has(name),
    hasFolder: (folder) => folders.has(folder),
  })
  const result = await turns.run(validateSteps(submitted, { catalog, checkInput }))
  const error = toGraphError(result)
  if (error !== null) throw error
  const text = await turns.run(writeGraphSteps(result.graph))
  return { checked: new CheckedGraph(result.graph, text), inputs: sources }
}

function isGraph(source: GraphSource): source is Graph {
  return source instanceof Map
}

function readJson(source: Exclude<GraphSource, Graph>): JsonValue {
  try {
    // An object goes through text as well, so that what is validated is what the threads are going to read.
    return parseLosslessJson(typeof source === 'string' ? source : toText(source as JsonValue))
  } catch (error) {
    throw new GraphError('malformed', `the graph is not valid JSON: ${(error as Error).message}`)
  }
}

function toText(value: JsonValue): string {
  const text: string | undefined = stringifyLosslessJson(value)
  return text ?? 'null'
}
