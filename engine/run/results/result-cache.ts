/**
 * Results of finished nodes by signature, bounded in bytes and in number; the least recently used goes first. There is one
 * budget for all owners, but the owner of the run is part of the key: nobody is served the results of another owner.
 * An entry is whole: output values together with the encoded files of its report. So a report that is repeated always has
 * its bytes; once they are evicted the node simply runs again.
 */
import { hash } from 'node:crypto'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import { weighResult, weighValues } from '../../node/node-call.ts'
import type { MadeReport } from '../../node/node-context.ts'
import { type MemoryLedger, Tensor } from '../../tensor/tensor.ts'
import { Blocker, eachTensor, type Slot, type Value } from '../../values/value.ts'
import { isLinkValue, type LiveGraph, type LiveNode } from '../schedule.ts'

export interface CacheEntry {
  readonly outputs: readonly Slot[]
  readonly report: MadeReport | null
}

// Bookkeeping of an entry beside its values.
const ENTRY_BYTES = 1024
// Small results are quick to make again: beyond this many they cost more memory than they save time.
const MAX_ENTRIES = 10_000

/** The distinct buffers that some values rest on. */
export function buffersOf(slots: readonly Slot[]): Set<SharedArrayBuffer> {
  const buffers = new Set<SharedArrayBuffer>()
  for (const slot of slots) for (const value of slot) eachTensor(value, (tensor) => buffers.add(tensor.data.buffer))
  return buffers
}

function plainBytesOf({ outputs, report }: CacheEntry): number {
  const inReport = report === null ? 0 : weighResult({ outputs: [], report })
  return outputs.reduce((sum, slot) => sum + weighValues(slot), ENTRY_BYTES + inReport)
}

export function fileBytesOf(report: MadeReport | null): number {
  let bytes = 0
  for (const items of Object.values(report ?? {})) {
    for (const item of items) if (item.kind === 'file') bytes += item.bytes.byteLength
  }
  return bytes
}

interface Weighed {
  readonly entry: CacheEntry
  readonly buffers: ReadonlySet<SharedArrayBuffer>
  /** In the heap of this thread. */
  readonly plainBytes: number
  readonly fileBytes: number
}

interface Kept extends Weighed {
  /** Ends the reservation of memory for its files. */
  endFiles(): void
}

interface ResultCacheDeps {
  /** For everything. */
  readonly budgetBytes: number
  /** For plain values, which share the heap of the thread with what runs. */
  readonly plainBudgetBytes: number
  readonly ledger: Pick<MemoryLedger, 'retain' | 'release' | 'reserve'>
}

export class ResultCache {
  readonly #deps: ResultCacheDeps
  // A Map remembers insertion order: re-inserting on use makes its first key the oldest.
  readonly #entries = new Map<string, Kept>()
  // Entries share buffers (an image that is passed through): each counts once.
  readonly #users = new Map<SharedArrayBuffer, number>()
  #usedBytes = 0
  #usedPlainBytes = 0

  constructor(deps: ResultCacheDeps) {
    this.#deps = deps
  }

  /** Drops the entry that was unused for longest; false when there is none. */
  evictOldest(): boolean {
    for (const [key, kept] of this.#entries) {
      this.#drop(key, kept)
      return true
    }
    return false
  }

  get(owner: string, signature: string): CacheEntry | null {
    const key = keyOf(owner, signature)
    const kept = this.#entries.get(key)
    if (kept === undefined) return null
    this.#entries.delete(key)
    this.#entries.set(key, kept)
    return kept.entry
  }

  set(owner: string, signature: string, entry: CacheEntry): void {
    const key = keyOf(owner, signature)
    const weighed = this.#weigh(entry)
    let wholeBytes = weighed.plainBytes + weighed.fileBytes
    for (const buffer of weighed.buffers) wholeBytes += buffer.byteLength
    if (wholeBytes > this.#deps.budgetBytes || weighed.plainBytes > this.#deps.plainBudgetBytes) return
    const old = this.#entries.get(key)
    if (old !== undefined) this.#drop(key, old)
    const endFiles = this.#reserveFiles(weighed.fileBytes)
    if (endFiles === null) return
    this.#add(key, { ...weighed, endFiles })
    while (this.#isOverfull() && this.evictOldest()) {
      // until the newest entries fit
    }
  }

  #add(key: string, kept: Kept): void {
    this.#entries.set(key, kept)
    this.#usedPlainBytes += kept.plainBytes
    this.#usedBytes += kept.plainBytes + kept.fileBytes
    for (const buffer of kept.buffers) {
      const count = this.#users.get(buffer) ?? 0
      this.#users.set(buffer, count + 1)
      if (count > 0) continue
      this.#usedBytes += buffer.byteLength
      this.#deps.ledger.retain(buffer)
    }
  }

  #drop(key: string, kept: Kept): void {
    this.#entries.delete(key)
    kept.endFiles()
    this.#usedPlainBytes -= kept.plainBytes
    this.#usedBytes -= kept.plainBytes + kept.fileBytes
    for (const buffer of kept.buffers) {
      const count = (this.#users.get(buffer) ?? 0) - 1
      if (count > 0) this.#users.set(buffer, count)
      else {
        this.#users.delete(buffer)
        this.#usedBytes -= buffer.byteLength
        this.#deps.ledger.release(buffer)
      }
    }
  }

  #weigh(entry: CacheEntry): Weighed {
    const plainBytes = plainBytesOf(entry)
    return { entry, buffers: buffersOf(entry.outputs), plainBytes, fileBytes: fileBytesOf(entry.report) }
  }

  /** null when running nodes have taken the memory. */
  #reserveFiles(bytes: number): (() => void) | null {
    if (bytes === 0) return () => {}
    try {
      return this.#deps.ledger.reserve(bytes)
    } catch {
      return null
    }
  }

  #isOverfull(): boolean {
    return (
      this.#usedBytes > this.#deps.budgetBytes ||
      this.#usedPlainBytes > this.#deps.plainBudgetBytes ||
      this.#entries.size > MAX_ENTRIES
    )
  }
}

function keyOf(owner: string, signature: string): string {
  return `${owner}\n${signature}`
}

// The key under which a node's result is cached: a digest of its class, its change value, its constants and the signatures
// of its producers. Node ids take no part, so the same sub-graph under other ids finds the same results; a class that needs
// its id, or promises nothing about equal inputs, is keyed by it. null: the result must not be reused.

type Signature = string | null

/** The change value of a node that has one; null for never cached. */
type ChangeValueOf = (node: LiveNode) => string | null

/** A text that differs whenever the value does. Throws for what has none (tensors inside an expanded graph). */
function canonical(value: Value): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof NumberText) return value.text
  if (value instanceof Tensor || value instanceof Blocker) throw new TypeError('not a constant')
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`
}

export interface Signatures {
  of(id: string): Signature
}

export function createSignatures(graph: LiveGraph, changeValueOf: ChangeValueOf): Signatures {
  // undefined while a node is being worked on: meeting it again means a cycle, which is never cached.
  const known = new Map<string, Signature | undefined>()

  function sign(live: LiveNode): Signature {
    const parts: string[] = [live.node.classType]
    if (live.node.hasChangeValue) {
      const change = changeValueOf(live)
      if (change === null) return null
      parts.push(change)
    }
    if (live.node.isKeyedById) parts.push(live.id)
    for (const name of Object.keys(live.inputs).sort()) {
      const value = live.inputs[name]
      if (isLinkValue(value)) {
        const producer = known.get(value[0])
        if (producer === undefined || producer === null) return null
        parts.push(name, `@${producer}:${value[1]}`)
      } else {
        try {
          parts.push(name, canonical(value))
        } catch {
          return null
        }
      }
    }
    return hash('sha256', JSON.stringify(parts), 'base64')
  }

  // Depth first without recursion: a chain may be as long as a graph.
  function resolve(id: string): Signature {
    const stack = [id]
    for (let at = stack.at(-1); at !== undefined; at = stack.at(-1)) {
      if (!graph.has(at)) known.set(at, null)
      if (known.get(at) !== undefined) {
        stack.pop()
        continue
      }
      const isFirstVisit = !known.has(at)
      known.set(at, undefined)
      const open = isFirstVisit ? graph.allProducers(at).filter((producer) => !known.has(producer)) : []
      if (open.length > 0) {
        stack.push(...open)
        continue
      }
      known.set(at, sign(graph.get(at)))
      stack.pop()
    }
    return known.get(id) ?? null
  }

  return { of: (id) => known.get(id) ?? resolve(id) }
}
