/**
 * Results of finished nodes by signature, bounded in bytes and in number; the least recently used goes first. There is one
 * budget for all owners, but the owner of the run is part of the key: nobody is served the results of another owner.
 * An entry is whole: output values together with the encoded files of its report. So a report that is repeated always has
 * its bytes; once they are evicted the node simply runs again.
 */
import type { MadeReport } from '../../node/node-context.ts'
import type { MemoryLedger } from '../../tensor/memory-ledger.ts'
import { eachTensor, type Slot } from '../../values/value.ts'
import { weighResult, weighValues } from '../../values/value-weight.ts'

export interface CacheEntry {
  readonly outputs: readonly Slot[]
  readonly report: MadeReport | null
}

export interface ResultCache {
  get(owner: string, signature: string): CacheEntry | null
  set(owner: string, signature: string, entry: CacheEntry): void
  /** Drops the entry that was unused for longest; false when there is none. */
  evictOldest(): boolean
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

export function createResultCache({ budgetBytes, plainBudgetBytes, ledger }: ResultCacheDeps): ResultCache {
  // A Map remembers insertion order: re-inserting on use makes its first key the oldest.
  const entries = new Map<string, Kept>()
  // Entries share buffers (an image that is passed through): each counts once.
  const users = new Map<SharedArrayBuffer, number>()
  let usedBytes = 0
  let usedPlainBytes = 0

  function add(key: string, kept: Kept): void {
    entries.set(key, kept)
    usedPlainBytes += kept.plainBytes
    usedBytes += kept.plainBytes + kept.fileBytes
    for (const buffer of kept.buffers) {
      const count = users.get(buffer) ?? 0
      users.set(buffer, count + 1)
      if (count > 0) continue
      usedBytes += buffer.byteLength
      ledger.retain(buffer)
    }
  }

  function drop(key: string, kept: Kept): void {
    entries.delete(key)
    kept.endFiles()
    usedPlainBytes -= kept.plainBytes
    usedBytes -= kept.plainBytes + kept.fileBytes
    for (const buffer of kept.buffers) {
      const count = (users.get(buffer) ?? 0) - 1
      if (count > 0) users.set(buffer, count)
      else {
        users.delete(buffer)
        usedBytes -= buffer.byteLength
        ledger.release(buffer)
      }
    }
  }

  function evictOldest(): boolean {
    for (const [key, kept] of entries) {
      drop(key, kept)
      return true
    }
    return false
  }

  function weigh(entry: CacheEntry): Weighed {
    const plainBytes = plainBytesOf(entry)
    return { entry, buffers: buffersOf(entry.outputs), plainBytes, fileBytes: fileBytesOf(entry.report) }
  }

  /** null when running nodes have taken the memory. */
  function reserveFiles(bytes: number): (() => void) | null {
    if (bytes === 0) return () => {}
    try {
      return ledger.reserve(bytes)
    } catch {
      return null
    }
  }

  const isOverfull = () => usedBytes > budgetBytes || usedPlainBytes > plainBudgetBytes || entries.size > MAX_ENTRIES
  const keyOf = (owner: string, signature: string) => `${owner}\n${signature}`

  return {
    get(owner, signature) {
      const key = keyOf(owner, signature)
      const kept = entries.get(key)
      if (kept === undefined) return null
      entries.delete(key)
      entries.set(key, kept)
      return kept.entry
    },
    set(owner, signature, entry) {
      const key = keyOf(owner, signature)
      const weighed = weigh(entry)
      let wholeBytes = weighed.plainBytes + weighed.fileBytes
      for (const buffer of weighed.buffers) wholeBytes += buffer.byteLength
      if (wholeBytes > budgetBytes || weighed.plainBytes > plainBudgetBytes) return
      const old = entries.get(key)
      if (old !== undefined) drop(key, old)
      const endFiles = reserveFiles(weighed.fileBytes)
      if (endFiles === null) return
      add(key, { ...weighed, endFiles })
      while (isOverfull() && evictOldest()) {
        // until the newest entries fit
      }
    },
    evictOldest,
  }
}
