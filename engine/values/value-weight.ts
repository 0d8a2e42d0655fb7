/**
 * How much plain values weigh, and how much of them one result may hold. Every part counts as often as it is met, because on its
 * way to another thread or into a file a text that stands in a list a thousand times is there a thousand times. The walk ends as
 * soon as the limit is reached, so a small value that repeats itself without end costs no more than a large one.
 */
import { type JsonValue, NumberText } from '../../lib/json/lossless-json.ts'
import type { CallResult, MadeReport } from '../node/node-context.ts'
import { NodeError, refuseLongList } from '../node/node-error.ts'
import { refuseLongText } from '../python/text-limit.ts'
import { Tensor } from '../tensor/tensor.ts'
import { Blocker, MAX_DEPTH, type Value } from './value.ts'

/** All outputs of one node together, tensors and files not counted: those have limits of their own. */
const MAX_RESULT_BYTES = 67_108_864

// A value with its entry in a list, roughly: a number takes less, an object more.
const PART_BYTES = 64
// A tensor without its elements: an object, its shape, and a view on shared memory in each thread that has seen it.
const TENSOR_BYTES = 512
const BYTES_PER_CHARACTER = 2

function refuseHeavyResult(bytes: number): void {
  if (bytes <= MAX_RESULT_BYTES) return
  throw new NodeError(
    'MemoryError',
    `the texts and lists of this result take more than ${MAX_RESULT_BYTES / 1_048_576} MiB. Use shorter texts or lists`,
  )
}

// Values are never changed once they have left their node, so each list and object is walked once.
const known = new WeakMap<object, number>()

/** In bytes. Throws NodeError for a text, a list or a whole that is larger than allowed. */
export function weighValue(value: Value, depth = 0): number {
  if (typeof value === 'string') {
    refuseLongText(value.length)
    return PART_BYTES + BYTES_PER_CHARACTER * value.length
  }
  if (typeof value !== 'object' || value === null) return PART_BYTES
  if (value instanceof Tensor) return TENSOR_BYTES
  if (value instanceof NumberText || value instanceof Blocker) return PART_BYTES
  const before = known.get(value)
  if (before !== undefined) return before
  if (depth > MAX_DEPTH) throw new TypeError(`a value nested deeper than ${MAX_DEPTH} levels cannot be passed on`)
  const bytes = Array.isArray(value) ? weighList(value, depth) : weighMembers(value, depth)
  known.set(value, bytes)
  return bytes
}

function weighList(list: readonly Value[], depth: number): number {
  refuseLongList(list.length)
  let bytes = PART_BYTES
  for (const part of list) {
    bytes += weighValue(part, depth + 1)
    refuseHeavyResult(bytes)
  }
  return bytes
}

function weighMembers(members: Readonly<Record<string, Value>>, depth: number): number {
  let bytes = PART_BYTES
  for (const [key, part] of Object.entries(members)) {
    bytes += BYTES_PER_CHARACTER * key.length + weighValue(part, depth + 1)
    refuseHeavyResult(bytes)
  }
  return bytes
}

export function weighValues(values: readonly Value[]): number {
  let bytes = 0
  for (const value of values) {
    bytes += weighValue(value)
    refuseHeavyResult(bytes)
  }
  return bytes
}

/** The plain values of a report; its files are counted where they lie. */
function weighReport(report: MadeReport): number {
  let bytes = 0
  for (const items of Object.values(report)) {
    for (const item of items) bytes += item.kind === 'value' ? weighValue(item.value as Value) : PART_BYTES
    refuseHeavyResult(bytes)
  }
  return bytes
}

/** What a call made, outputs and report. */
export function weighResult({ outputs, report }: CallResult): number {
  const outputBytes = outputs instanceof Blocker ? 0 : weighValues(outputs)
  return outputBytes + (report === undefined ? 0 : weighReport(report))
}

/** The same for what has crossed threads, where classes are gone: each side must come to the same sum. */
export function weighJson(value: JsonValue): number {
  if (typeof value === 'string') return PART_BYTES + BYTES_PER_CHARACTER * value.length
  if (typeof value !== 'object' || value === null) return PART_BYTES
  let bytes = PART_BYTES
  for (const part of Array.isArray(value) ? value : Object.values(value)) bytes += weighJson(part as JsonValue)
  return bytes
}

// How much plain values (texts, lists, numbers) all runs together, and each of them, may hold at a time. They lie in the heap of
// the engine thread, which all runs share: the run that would fill it fails, and the thread lives on. What tensors and files
// take is counted by the memory ledger.

export interface ValueBudget {
  open(): RunValues
}

/** What one run holds. */
export interface RunValues {
  /** Throws NodeError beyond the limits. */
  take(bytes: number): void
  give(bytes: number): void
  /** The run is over: everything is given back. */
  close(): void
}

export interface ValueLimits {
  readonly totalBytes: number
  readonly runBytes: number
}

// Every run may hold this much, even when others have taken everything else; an ordinary job never needs more.
const GUARANTEED_BYTES = 4_194_304

export function createValueBudget({ totalBytes, runBytes }: ValueLimits): ValueBudget {
  let heldByAll = 0

  function open(): RunValues {
    let held = 0
    let isClosed = false
    return {
      take(bytes) {
        if (isClosed) return
        const isCrowded = heldByAll + bytes > totalBytes && held + bytes > GUARANTEED_BYTES
        if (isCrowded || held + bytes > runBytes) throw tooMuch(isCrowded ? totalBytes : runBytes, isCrowded)
        held += bytes
        heldByAll += bytes
      },
      give(bytes) {
        if (isClosed) return
        held -= bytes
        heldByAll -= bytes
      },
      close() {
        isClosed = true
        heldByAll -= held
        held = 0
      },
    }
  }
  return { open }
}

function tooMuch(limit: number, isCrowded: boolean): NodeError {
  const whose = isCrowded ? 'all running jobs together' : 'a running job'
  return new NodeError(
    'MemoryError',
    `${whose} may hold ${Math.ceil(limit / 1_048_576)} MiB of texts and lists. Use shorter ones, or fewer at a time`,
  )
}
