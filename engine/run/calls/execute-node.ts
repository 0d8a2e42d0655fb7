/**
 * What happens when a node is scheduled: its cached result is used, or its lazy inputs are settled, or it runs (as often
 * as its input lists ask for) and its result is kept. Order and parallelism are decided by run-graph.ts.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NodeRef } from '../../graph/run-event.ts'
import { type CallSurroundings, findFile, namesInFolder, readInputs, weighResult } from '../../node/node-call.ts'
import type { GraphBuilder, InputFile, MadeReport } from '../../node/node-context.ts'
import { Interrupted, NodeError } from '../../node/node-error.ts'
import { Blocker, type Slot, type Value } from '../../values/value.ts'
import type { CacheEntry } from '../results/result-cache.ts'
import type { NodeVoice, PendingExpansion, RunState } from '../run-state.ts'
import { isLinkValue, type LiveNode } from '../schedule.ts'
import {
  blockedOutputs,
  type CallInputs,
  type CallOutcome,
  type CallOutputs,
  type GatheredInputs,
  gatherInputs,
  mergeOutputs,
  mergeReports,
  planCalls,
  type RunHost,
} from './call-node.ts'

// Calls of cheap nodes follow each other without leaving the thread; after this long other runs and messages are served.
const LONGEST_TURN_MS = 4

/** `waiting`: the node has more to wait for and must be scheduled again. */
type Execution = 'done' | 'waiting'

/** `onSuspend` is called when the node runs on another thread, or waits: others may run meanwhile. */
export async function executeNode(state: RunState, live: LiveNode, onSuspend: () => void): Promise<Execution> {
  const voice = state.line.open()
  try {
    return await takeStep(state, live, { voice, onSuspend })
  } finally {
    voice.close()
  }
}

/** One time that the node is scheduled: it may take several until it is done. */
interface Step {
  readonly voice: NodeVoice
  onSuspend(): void
}

function takeStep(state: RunState, live: LiveNode, step: Step): Execution | Promise<Execution> {
  const cached = findCached(state, live.id)
  if (cached !== null) return repeat(state, live, { ...step, cached })
  const expansion = state.expansions.get(live.id)
  if (expansion !== undefined) {
    const outputs = resolveExpansion(state, live, expansion)
    return finish(state, live, { voice: step.voice, entry: { outputs, report: expansion.report } })
  }
  return run(state, live, step)
}

/** A result of an earlier run, or of an equal node of this one. */
function findCached(state: RunState, nodeId: string): CacheEntry | null {
  const hit = state.hits.get(nodeId)
  if (hit !== undefined) return hit
  const signature = state.signatures.of(nodeId)
  return signature === null ? null : state.deps.cache.get(state.request.owner, signature)
}

async function repeat(
  state: RunState,
  live: LiveNode,
  step: Step & { readonly cached: CacheEntry },
): Promise<Execution> {
  const { cached, voice } = step
  state.results.hold(live.id, cached.outputs)
  if (cached.report !== null) await tell(state, live, { ...step, report: cached.report, isCached: true })
  voice.send({ type: 'node_finished', ...live.ref })
  state.results.readBy(live.id, producersReadBy(state, live))
  return 'done'
}

/** Others may run while large files are written. */
async function tell(
  { deps }: RunState,
  live: LiveNode,
  { voice, onSuspend, report, isCached }: Step & { readonly report: MadeReport; readonly isCached: boolean },
): Promise<void> {
  const sent = deps.setAside(report)
  if (sent instanceof Promise) onSuspend()
  voice.send({ type: 'node_report', ...live.ref, report: await sent, cached: isCached })
}

async function run(state: RunState, live: LiveNode, step: Step): Promise<Execution> {
  const { voice } = step
  voice.send({ type: 'node_started', ...live.ref })
  const asked = state.asked.get(live.id) ?? NO_NAMES
  const gathered = gatherInputs(live, { outputsOf: state.results.outputsOf, asked })
  state.given.set(live.id, gathered.lists)
  if (live.node.asksLazily && askForMore(state, live, gathered)) return 'waiting'
  const { calls, reports, frees, plainBytes } = await runCalls(state, live, { ...step, gathered })
  try {
    // From here on they count as what the run holds, if another node reads them.
    state.values.give(plainBytes)
    const report = mergeReports(reports)
    if (report !== null) await tell(state, live, { ...step, report, isCached: false })
    if (calls.some(({ expand }) => expand !== null)) {
      expandNode(state, live, { calls, report })
      return 'waiting'
    }
    const outputs = mergeOutputs(
      calls.map((call) => call.outputs),
      live.node.definition.output_is_list,
    )
    return finish(state, live, { voice, entry: { outputs, report } })
  } finally {
    for (const free of frees) free()
  }
}

const NO_NAMES: ReadonlySet<string> = new Set()

function finish(
  state: RunState,
  live: LiveNode,
  { voice, entry }: { readonly voice: NodeVoice; readonly entry: CacheEntry },
): Execution {
  state.results.hold(live.id, entry.outputs)
  const signature = state.signatures.of(live.id)
  if (signature !== null) state.deps.cache.set(state.request.owner, signature, entry)
  voice.send({ type: 'node_finished', ...live.ref })
  state.executed.add(live.id)
  state.given.delete(live.id)
  state.results.readBy(live.id, producersReadBy(state, live))
  return 'done'
}

/** True when the node wants lazy inputs that are not there yet; they are then waited for like any other. */
function askForMore(state: RunState, live: LiveNode, { lists, missing }: GatheredInputs): boolean {
  const calls = planCalls(lists, live.node.definition.is_input_list)
  const names = new Set<string>()
  for (const { inputs, blocker } of calls) {
    if (blocker === null) for (const name of live.node.askLazy(readInputs(live.node, inputs))) names.add(name)
  }
  const wanted = [...names].filter((name) => !lists.has(name) || missing.has(name))
  for (const name of wanted) addAskedLink(state, live, name)
  return wanted.length > 0
}

function addAskedLink(state: RunState, live: LiveNode, name: string): void {
  const value = Object.hasOwn(live.inputs, name) ? live.inputs[name] : undefined
  if (value === undefined || !isLinkValue(value)) {
    const problem = value === undefined ? 'there is no input to that node at all' : 'that value is a constant'
    throw new NodeError('NodeInputError', `Node ${live.id} says it needs input ${name}, but ${problem}`)
  }
  const asked = state.asked.get(live.id)
  if (asked === undefined) state.asked.set(live.id, new Set([name]))
  else asked.add(name)
  state.schedule.addLink(value[0], live.id)
}

interface CallsDone {
  readonly calls: readonly ExpandingCall[]
  readonly reports: readonly MadeReport[]
  /** Give back the memory of each call. */
  readonly frees: readonly (() => void)[]
  /** What the run was charged for their plain values. */
  readonly plainBytes: number
}

async function runCalls(
  state: RunState,
  live: LiveNode,
  { voice, onSuspend, gathered }: Step & { readonly gathered: GatheredInputs },
): Promise<CallsDone> {
  const { definition } = live.node
  const calls: ExpandingCall[] = []
  const reports: MadeReport[] = []
  const frees: (() => void)[] = []
  let plainBytes = 0
  let turnStartedAt = performance.now()
  try {
    for (const [index, planned] of planCalls(gathered.lists, definition.is_input_list).entries()) {
      if (planned.blocker !== null) {
        const blocker = silence(state, live.ref, { voice, blocker: planned.blocker })
        calls.push({ outputs: blockedOutputs(blocker, definition.output.length), expand: null })
        continue
      }
      if (performance.now() - turnStartedAt > LONGEST_TURN_MS) {
        await nextTurn()
        if (state.deps.isCancelled()) throw new Interrupted()
        turnStartedAt = performance.now()
      }
      const pending = call(state, live, { voice, index, inputs: planned.inputs })
      if (pending instanceof Promise) onSuspend()
      const { result, free } = await pending
      frees.push(free)
      // It was cancelled, or another node of it failed: nobody would give back what this call made.
      if (state.results.isOver()) throw new Interrupted()
      state.deps.atWork()
      const bytes = weighResult(result)
      state.values.take(bytes)
      plainBytes += bytes
      if (result.report !== undefined) reports.push(result.report)
      const { outputs } = result
      const plain = outputs instanceof Blocker ? blockedOutputs(outputs, definition.output.length) : outputs
      calls.push({ outputs: plain, expand: result.expand ?? null })
    }
  } catch (error) {
    for (const free of frees) free()
    throw error
  }
  return { calls, reports, frees, plainBytes }
}

/** A blocker with a message tells it at its first consumer and is silent from there on. */
function silence(
  state: RunState,
  ref: NodeRef,
  { voice, blocker }: { readonly voice: NodeVoice; readonly blocker: Blocker },
): Blocker {
  if (blocker.message === null) return blocker
  if (!state.toldBlockers.has(blocker)) {
    state.toldBlockers.add(blocker)
    voice.send({ type: 'node_blocked', ...ref, message: blocker.message })
  }
  return new Blocker(null)
}

function call(
  state: RunState,
  live: LiveNode,
  { voice, index, inputs }: { readonly voice: NodeVoice; readonly index: number; readonly inputs: CallInputs },
): CallOutcome | Promise<CallOutcome> {
  const { ref } = live
  const host: RunHost = {
    progress(value, max, { picture, isOwn } = {}) {
      voice.send({ type: 'node_progress', ...ref, value, max, ...(isOwn === true && { isOwn }) })
      if (picture !== undefined) voice.send({ type: 'preview', ...ref, ...picture })
    },
    preview: (contentType, bytes) => voice.send({ type: 'preview', ...ref, contentType, bytes }),
    log: (text) => state.deps.emit({ type: 'log', text }),
    text: (text) => voice.send({ type: 'node_text', ...ref, text }),
    reserveNumbers: state.deps.reserveNumbers,
    runModel: (call) => state.deps.runModel({ ...call, key: `${live.id}.${index}` }),
  }
  return state.deps.callNode(live.node, inputs, { call: surroundings(state, live, { index, inputs }), host })
}

function surroundings(
  { request, deps }: RunState,
  live: LiveNode,
  { index, inputs }: { readonly index: number; readonly inputs: CallInputs },
): CallSurroundings {
  const { hiddenTypes, classType, folderInputs } = live.node
  return {
    nodeId: live.id,
    callIndex: index,
    files: { ...filesNamedBy(inputs, request.files), ...filesInFolders(folderInputs, inputs, request.files) },
    promptText: hiddenTypes.has('PROMPT') ? request.promptText : null,
    extraPngInfoText: hiddenTypes.has('EXTRA_PNGINFO') ? request.extraPngInfoText : null,
    instanceLetters: deps.instanceLetters(request.owner, live.id, classType),
    maxImagePixels: deps.maxImagePixels,
    nowMs: deps.nowMs(),
  }
}

/** Only the files that a call names travel with it. */
function filesNamedBy(
  inputs: Readonly<Record<string, Value>>,
  files: Readonly<Record<string, InputFile>>,
): Record<string, InputFile> {
  const named: Record<string, InputFile> = {}
  for (const value of Object.values(inputs)) {
    const file = typeof value === 'string' ? findFile(files, value) : null
    if (file !== null) named[value as string] = file
  }
  return named
}

function filesInFolders(
  folderInputs: readonly string[],
  inputs: Readonly<Record<string, Value>>,
  files: Readonly<Record<string, InputFile>>,
): Record<string, InputFile> {
  const folders = folderInputs.map((name) => inputs[name]).filter((value) => typeof value === 'string')
  const names = folders.flatMap((folder) => namesInFolder(files, folder))
  return Object.fromEntries(names.map((name) => [name, files[name]]))
}

// Nodes that answer with a sub-graph. The children join the run; the parent waits for those that its outputs link to and
// is then finished with their values. Children that are output nodes run as well.

interface ExpandedNode {
  readonly report: MadeReport | null
  readonly calls: readonly ExpandingCall[]
}

interface ExpandingCall {
  readonly outputs: CallOutputs
  readonly expand: GraphBuilder | null
}

function expandNode(state: RunState, parent: LiveNode, { calls, report }: ExpandedNode): void {
  const { graph, schedule, results } = state
  const outputNodes: string[] = []
  for (const { outputs, expand } of calls) {
    results.keep(outputs)
    for (const built of expand?.nodes ?? []) {
      const child = graph.addChild(parent, built)
      results.keep(Object.values(built.inputs))
      for (const producer of graph.allProducers(child.id)) results.addReader(producer, child.id)
      if (child.node.definition.output_node) outputNodes.push(child.id)
    }
  }
  for (const producer of linkedBy(calls)) results.addReader(producer, parent.id)
  schedule.add(outputNodes)
  for (const id of outputNodes) schedule.addLink(id, parent.id)
  for (const producer of linkedBy(calls)) schedule.addLink(producer, parent.id)
  state.expansions.set(parent.id, {
    report,
    calls: calls.map(({ outputs, expand }) => ({ outputs, hasLinks: expand !== null })),
  })
}

function linkedBy(calls: readonly ExpandingCall[]): string[] {
  return calls.flatMap(({ outputs, expand }) =>
    expand === null ? [] : outputs.flatMap((value) => (isLinkValue(value) ? [value[0]] : [])),
  )
}

/** The parent's outputs, now that the children are done. */
function resolveExpansion(state: RunState, parent: LiveNode, { calls }: PendingExpansion): readonly Slot[] {
  const isList = parent.node.definition.output_is_list
  const resolved = calls.map(({ outputs, hasLinks }) =>
    hasLinks ? outputs.map((value, slot) => resolve(state, value, isList[slot])) : outputs.map(asList(isList)),
  )
  // Every slot of every call is a list by now: a link may stand for several values.
  return mergeOutputs(
    resolved,
    isList.map(() => true),
  )
}

function asList(isList: readonly boolean[]): (value: Value, slot: number) => Value {
  return (value, slot) => (isList[slot] ? value : [value])
}

function resolve(state: RunState, value: Value, isListSlot: boolean): Value {
  if (!isLinkValue(value)) return isListSlot ? value : [value]
  const [producer, slot] = value
  const values = state.results.outputsOf(producer)?.[slot]
  if (values === undefined) throw new NodeError('IndexError', `node ${producer} has no output slot ${slot}`)
  return [...values]
}

/** Everything that the parent reads: its own links and those it returned. */
function producersReadBy(state: RunState, live: LiveNode): string[] {
  const expansion = state.expansions.get(live.id)
  const own = state.graph.allProducers(live.id)
  if (expansion === undefined) return own
  const links = expansion.calls.flatMap(({ outputs }) => outputs.filter(isLinkValue).map(([producer]) => producer))
  return [...own, ...links]
}
