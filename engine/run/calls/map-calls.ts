/**
 * ComfyUI's list mapping; pure. A node is called as often as its longest input list is long, shorter lists repeating their
 * last value; a list node is called once with whole lists. A blocker in the inputs of a call stands for its result.
 */

import type { MadeReport } from '../../node/node-context.ts'
import { NodeError, refuseLongList } from '../../node/node-error.ts'
import { Blocker, type Slot, type Value } from '../../values/value.ts'

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
