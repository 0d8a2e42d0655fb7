/**
 * Where a call runs: cheap nodes here on the engine thread, heavy ones on a pool. Either way the memory that the call
 * asked for belongs to the call until the executor has taken over what it wants to keep.
 */

import type { Cost, EngineNode } from '../../node/define-node.ts'
import { type CallHost, type CallSurroundings, performCall, readInputs } from '../../node/node-call.ts'
import type { CallResult, MadeReport } from '../../node/node-context.ts'
import { NodeError, refuseLongList } from '../../node/node-error.ts'
import type { MemoryLedger, MemoryOwner } from '../../tensor/tensor.ts'
import { Blocker, type Slot, type Value } from '../../values/value.ts'
import { buffersOf, fileBytesOf } from '../results/result-cache.ts'
import { declarationsOf, isLinkValue, type LiveNode } from '../schedule.ts'

// ComfyUI's list mapping; pure. A node is called as often as its longest input list is long, shorter lists repeating their
// last value; a list node is called once with whole lists. A blocker in the inputs of a call stands for its result.

/** The arguments of one call: values, or whole lists for a list node. */
export type CallInputs = Readonly<Record<string, Value>>

interface PlannedCall {
  readonly inputs: CallInputs
  /** The first blocker among the inputs: the call is skipped. */
  readonly blocker: Blocker | null
}

export function planCalls(lists: ReadonlyMap<string, Slot>, isInputList: boolean): PlannedCall[] {
  if (isInputList) return [planListCall(lists)]
  let count = lists.size === 0 ? 1 : 0
  for (const list of lists.values()) count = Math.max(count, list.length)
  // With nothing but empty lists there is no value to call the node with.
  if (count === 0) throw new NodeError('IndexError', `${[...lists.keys()].join(', ')}: the list of values is empty`)
  return Array.from({ length: count }, (_, index) => planMappedCall(lists, index))
}

function planListCall(lists: ReadonlyMap<string, Slot>): PlannedCall {
  let blocker: Blocker | null = null
  const inputs: Record<string, Value> = {}
  for (const [name, list] of lists) {
    inputs[name] = [...list]
    blocker ??= list.find((value) => value instanceof Blocker) ?? null
  }
  return { inputs, blocker }
}

function planMappedCall(lists: ReadonlyMap<string, Slot>, index: number): PlannedCall {
  let blocker: Blocker | null = null
  const inputs: Record<string, Value> = {}
  for (const [name, list] of lists) {
    if (list.length === 0) throw new NodeError('IndexError', `${name}: the list of values is empty`)
    const value = list[Math.min(index, list.length - 1)]
    inputs[name] = value
    if (value instanceof Blocker) blocker ??= value
  }
  return { inputs, blocker }
}

/** What one call gave, slot by slot. */
export type CallOutputs = readonly Value[]

/** One list per slot: list outputs are joined, others collected. */
export function mergeOutputs(calls: readonly CallOutputs[], outputIsList: readonly boolean[]): Slot[] {
  return outputIsList.map((isList, slot) => {
    if (!isList) return calls.map((outputs) => outputs[slot])
    const lists = calls.map((outputs) => listOf(outputs[slot], slot))
    refuseLongList(lists.reduce((sum, list) => sum + list.length, 0))
    return lists.flat()
  })
}

function listOf(value: Value, slot: number): Value[] {
  // A blocker in place of a list stays one element of the joined list.
  if (value instanceof Blocker) return [value]
  if (!Array.isArray(value))
    throw new NodeError('TypeError', `output slot ${slot} is a list, but the node returned a single value`)
  return value
}

/** The outputs of a call that was blocked, or that returned one blocker for everything. */
export function blockedOutputs(blocker: Blocker, slots: number): CallOutputs {
  return Array.from({ length: slots }, () => blocker)
}

/** The UI outputs of several calls become one: the lists of each key joined, the keys being those of the first. */
export function mergeReports(reports: readonly MadeReport[]): MadeReport | null {
  if (reports.length === 0) return null
  if (reports.length === 1) return reports[0]
  return Object.fromEntries(Object.keys(reports[0]).map((key) => [key, reports.flatMap((report) => report[key] ?? [])]))
}

/** Heavy calls go here. Resolves or rejects with what the node did; rejects too when its thread is lost. */
export interface ComputePool {
  readonly size: number
  call(task: ComputeTask): Promise<CallResult>
}

export interface ComputeTask {
  readonly node: EngineNode
  readonly inputs: CallInputs
  readonly call: CallSurroundings
  readonly host: CallHost
  readonly cancelFlag: Int32Array<SharedArrayBuffer>
}

export interface CallOutcome {
  readonly result: CallResult
  /** Gives the call's memory back, except what has been retained meanwhile. */
  free(): void
}

interface CallNodeDeps {
  readonly ledger: MemoryLedger
  readonly pools: Readonly<Record<Exclude<Cost, 'inline'>, ComputePool>>
  readonly cancelFlag: Int32Array<SharedArrayBuffer>
}

/** What a call gets of its run; its memory comes from here. */
export type RunHost = Omit<CallHost, 'allocate' | 'reserve' | 'isCancelled'>

export type NodeCalls = (
  node: EngineNode,
  inputs: CallInputs,
  around: { readonly call: CallSurroundings; readonly host: RunHost },
) => CallOutcome | Promise<CallOutcome>

/** The calls of one run. */
export function createNodeCalls({ ledger, pools, cancelFlag }: CallNodeDeps): NodeCalls {
  const owner: MemoryOwner = { liveBytes: 0 }

  function runOnPool(pool: ComputePool, task: ComputeTask, free: () => void): Promise<CallResult> {
    // The inputs stay alive until the thread is done, even when the run has been given up meanwhile.
    const inputBuffers = buffersOf([Object.values(task.inputs)])
    for (const buffer of inputBuffers) ledger.retain(buffer)
    return pool.call(task).then(
      (result) => {
        for (const buffer of inputBuffers) ledger.release(buffer)
        return result
      },
      (error) => {
        for (const buffer of inputBuffers) ledger.release(buffer)
        free()
        throw error
      },
    )
  }

  return function callNode(node, inputs, { call, host: parts }) {
    const allocated: SharedArrayBuffer[] = []
    const reserved: (() => void)[] = []
    let isOver = false
    const free = () => {
      isOver = true
      for (const buffer of allocated.splice(0)) ledger.release(buffer)
      for (const end of reserved.splice(0)) end()
    }
    /** What a call has made of files is there until its node is done, and only then known. */
    const keep = (result: CallResult): CallOutcome => {
      try {
        const fileBytes = fileBytesOf(result.report ?? null)
        if (fileBytes > 0) reserved.push(ledger.reserve(fileBytes, { owner }))
      } catch (error) {
        free()
        throw error
      }
      return { result, free }
    }
    const host: CallHost = {
      ...parts,
      isCancelled: () => Atomics.load(cancelFlag, 0) !== 0,
      allocate(bytes) {
        const buffer = ledger.allocate(bytes, owner)
        allocated.push(buffer)
        return buffer
      },
      async reserve(bytes, besideBytes = 0) {
        const end = await ledger.reserveOrWait(bytes, { besideBytes, owner })
        if (isOver) end()
        else reserved.push(end)
        return end
      },
    }
    const read = readInputs(node, inputs)
    const cost = node.costOf(read)
    if (cost !== 'inline') {
      return runOnPool(pools[cost], { node, inputs, call, host, cancelFlag }, free).then(keep)
    }
    try {
      const result = performCall(node, read, { call, host })
      if (!(result instanceof Promise)) return keep(result)
      return result.then(keep, (error) => {
        free()
        throw error
      })
    } catch (error) {
      free()
      throw error
    }
  }
}

// The input lists of a node: for a link the slot of its producer, for a constant a list of one. Only declared inputs are
// passed on; an absent optional one is simply not there. Lazy inputs that the node has not asked for are reported as missing.

export interface GatheredInputs {
  readonly lists: ReadonlyMap<string, Slot>
  readonly missing: ReadonlySet<string>
}

interface GatherFrom {
  outputsOf(nodeId: string): readonly Slot[] | null
  /** Lazy inputs that the node has asked for; others stay hidden from it even when their producer has run. */
  readonly asked: ReadonlySet<string>
}

export function gatherInputs(live: LiveNode, { outputsOf, asked }: GatherFrom): GatheredInputs {
  const lists = new Map<string, Slot>()
  const missing = new Set<string>()
  for (const { path, options, category } of wantedInputs(live)) {
    const value = live.inputs[path]
    if (value === undefined || !Object.hasOwn(live.inputs, path)) {
      if (category === 'required') throw missingArgument(live, path)
      continue
    }
    if (!isLinkValue(value) || options.rawLink === true) {
      lists.set(path, [value])
      continue
    }
    const isLazy = live.node.asksLazily && options.lazy === true
    if (isLazy && !asked.has(path)) missing.add(path)
    else lists.set(path, slotOf(outputsOf(value[0]), value))
  }
  return { lists, missing }
}

type Wanted = Pick<ReturnType<typeof declarationsOf>[number], 'path' | 'options' | 'category'>

/** What the class declares and, for a class that takes everything, whatever else was given. */
function wantedInputs(live: LiveNode): readonly Wanted[] {
  const declared = declarationsOf(live)
  if (!live.node.acceptsAllInputs) return declared
  const known = new Set(declared.map(({ path }) => path))
  const others = Object.keys(live.inputs).filter((name) => !known.has(name))
  return [...declared, ...others.map((path): Wanted => ({ path, options: {}, category: 'optional' }))]
}

function slotOf(outputs: readonly Slot[] | null, [producer, slot]: readonly [string, number]): Slot {
  if (outputs === null) throw new NodeError('RuntimeError', `node ${producer} has not run`)
  const values = outputs[slot]
  if (values === undefined) throw new NodeError('IndexError', `node ${producer} has no output slot ${slot}`)
  return values
}

function missingArgument({ node }: LiveNode, name: string): NodeError {
  return new NodeError('TypeError', `${node.classType} is missing 1 required argument: '${name}'`)
}
