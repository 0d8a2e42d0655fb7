/**
 * One run from `started` to its end: what is cached is found, what is needed is scheduled, nodes are executed (several at
 * a time where the graph allows it), and the end is told in one event. Never throws for what a node did; whatever it
 * throws is a defect of the engine.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { EngineFailure } from '../graph/run-event.ts'
import { readInputs, toFiles } from '../node/node-call.ts'
import { Interrupted, NodeError } from '../node/node-error.ts'
import type { Value } from '../values/value.ts'
import { executeNode } from './calls/execute-node.ts'
import { type CacheEntry, createSignatures } from './results/result-cache.ts'
import {
  blame,
  createEventLine,
  createRunResults,
  NodeFailure,
  type RunDeps,
  type RunRequest,
  type RunState,
  toFailure,
} from './run-state.ts'
import { isLinkValue, LiveGraph, type LiveNode, Schedule } from './schedule.ts'

// Cheap nodes run without leaving the thread; after this long other runs and messages are served.
const LONGEST_TURN_MS = 4

export async function runGraph(request: RunRequest, deps: RunDeps): Promise<void> {
  const startedAt = performance.now()
  let state: RunState
  try {
    state = begin(request, deps)
  } catch (error) {
    deps.emit({ type: 'started', nodesTotal: request.graph.size })
    fail(deps, toFailure(error, null, null))
    return
  }
  try {
    await execute(state)
    await repeatIntermediate(state)
    deps.emit({
      type: 'log',
      text: `Prompt executed in ${((performance.now() - startedAt) / 1000).toFixed(2)} seconds\n`,
    })
    deps.emit({ type: 'succeeded' })
  } catch (error) {
    state.line.flush()
    if (error instanceof Interrupted || deps.isCancelled()) interrupt(deps)
    else fail(deps, error instanceof NodeFailure ? blame(state, error) : toFailure(error, null, null))
  } finally {
    state.results.releaseAll()
  }
}

/** The log reads as ComfyUI's own would: users who look for what went wrong find the words that they know. */
function fail({ emit }: RunDeps, failure: EngineFailure): void {
  const traceback = failure.traceback === null ? '' : `${failure.traceback.trimEnd()}\n`
  emit({ type: 'log', text: `!!! Exception during processing !!! ${failure.message}\n${traceback}` })
  emit({ type: 'failed', failure })
}

function interrupt({ emit }: RunDeps): void {
  emit({ type: 'log', text: 'Processing interrupted\n' })
  emit({ type: 'interrupted' })
}

function begin(request: RunRequest, deps: RunDeps): RunState {
  const graph = new LiveGraph(request.graph, deps.table)
  const values = deps.values.open()
  const results = createRunResults({ ledger: deps.ledger, values })
  const hits = new Map<string, CacheEntry>()
  const signatures = createSignatures(graph, (live) => changeValue(live, request))
  const schedule = new Schedule({
    producersOf: (id) => graph.firstProducers(id),
    isOutput: (id) => graph.get(id).node.definition.output_node,
    isCached: (id) => results.outputsOf(id) !== null || hits.has(id) || takeHit(id),
  })
  // Only what the run needs is taken out of the cache: the rest may be evicted while it runs.
  function takeHit(id: string): boolean {
    const signature = signatures.of(id)
    const entry = signature === null ? null : deps.cache.get(request.owner, signature)
    if (entry === null) return false
    hits.set(id, entry)
    results.hold(id, entry.outputs)
    return true
  }
  const line = createEventLine(deps.emit)
  const maps = { asked: new Map(), expansions: new Map(), given: new Map(), toldBlockers: new WeakSet() }
  const executed = new Set<string>()
  const state: RunState = { request, deps, graph, signatures, schedule, results, values, line, hits, executed, ...maps }
  announce(state)
  return state
}

function announce({ graph, deps, request, signatures, results, schedule }: RunState): void {
  const outputs = graph.outputIds()
  const reachable = graph.reachableFrom(outputs)
  for (const id of reachable) for (const producer of graph.allProducers(id)) results.addReader(producer, id)
  deps.emit({ type: 'started', nodesTotal: reachable.size })
  const cached = [...graph.ids()].filter((id) => {
    const signature = signatures.of(id)
    return signature !== null && deps.cache.get(request.owner, signature) !== null
  })
  deps.emit({ type: 'cached', nodeIds: cached })
  schedule.add(outputs)
}

/** Called with constants only, as they stand in the graph; a value that cannot be read makes the node uncacheable. */
function changeValue(live: LiveNode, request: RunRequest): string | null {
  const constants: Record<string, Value> = {}
  for (const [name, value] of Object.entries(live.inputs)) if (!isLinkValue(value)) constants[name] = value
  try {
    return live.node.changeValue(readInputs(live.node, constants), { files: toFiles(request.files) })
  } catch {
    return null
  }
}

/** Nodes that are running, and the first failure among them: it may come while nobody awaits that node. */
interface InFlight {
  readonly works: Set<Promise<void>>
  failure: unknown
}

async function execute(state: RunState): Promise<void> {
  const { schedule, deps } = state
  const inFlight: InFlight = { works: new Set(), failure: null }
  const interrupted = deps.cancelled.then(() => {
    throw new Interrupted()
  })
  // Without a listener of its own, a cancel that comes after the end would count as unhandled.
  interrupted.catch(() => {})
  let turnStartedAt = performance.now()
  while (!schedule.isEmpty()) {
    if (deps.isCancelled()) throw new Interrupted()
    if (inFlight.failure !== null) throw inFlight.failure
    if (performance.now() - turnStartedAt > LONGEST_TURN_MS || !deps.hasRoom()) {
      await Promise.race([deps.room().then(() => nextTurn()), interrupted])
      turnStartedAt = performance.now()
    }
    deps.atWork()
    const id = inFlight.works.size < deps.maxInFlight ? schedule.next() : null
    if (id !== null) await Promise.race([start(state, id, inFlight), interrupted])
    else if (inFlight.works.size > 0) await Promise.race([...inFlight.works, interrupted])
    else if (inFlight.failure === null && !schedule.isEmpty()) throw cycleFailure(state)
  }
}

/** Starts a node and resolves when it is done or waits for another thread. Never rejects: failures are left in `inFlight`. */
function start(state: RunState, id: string, inFlight: InFlight): Promise<void> {
  const live = state.graph.get(id)
  const suspended = Promise.withResolvers<void>()
  const work = executeNode(state, live, suspended.resolve).then(
    (execution) => {
      inFlight.works.delete(work)
      if (execution === 'done') state.schedule.complete(id)
      else state.schedule.putBack(id)
    },
    (error) => {
      inFlight.works.delete(work)
      inFlight.failure ??= error instanceof Interrupted ? error : new NodeFailure(live, error)
    },
  )
  inFlight.works.add(work)
  return Promise.race([work, suspended.promise])
}

function cycleFailure(state: RunState): NodeFailure {
  const cycle = state.schedule.findCycle()
  const live = state.graph.get(cycle[0] ?? '')
  const around = [...cycle, cycle[0]].map((id) => `${id} (${state.graph.get(id).node.classType})`).join(' -> ')
  return new NodeFailure(live, new NodeError('graph.DependencyCycleError', `Dependency cycle detected: ${around}`))
}

/** Nodes that show something while they work show it again when their result came from the cache. */
async function repeatIntermediate({ graph, deps, request, signatures, executed }: RunState): Promise<void> {
  for (const id of graph.ids()) {
    const live = graph.get(id)
    if (!live.node.definition.has_intermediate_output || executed.has(id)) continue
    const signature = signatures.of(id)
    const entry = signature === null ? null : deps.cache.get(request.owner, signature)
    if (!entry?.report) continue
    deps.emit({ type: 'node_report', ...live.ref, report: await deps.setAside(entry.report), cached: true })
  }
}
