/**
 * Results of finished nodes by signature, bounded in bytes and in number, least recently used first to go. One budget for all accounts,
 * but the account is part of the key: nobody is served from somebody else's work.
 * An entry is whole: output values together with the encoded files of its report. So a report that is repeated always has
 * its bytes; once they are evicted the node simply runs again.
 */
import type { MadeReport } from '../node-context.ts'
import type { MemoryLedger } from '../tensor/memory.ts'
import { eachTensor, type Slot, type Value } from '../value.ts'

export interface CacheEntry {
  readonly outputs: readonly Slot[]
  readonly report: MadeReport | null
}

export interface ResultCache {
  get(accountId: string, signature: string): CacheEntry | null
  set(accountId: string, signature: string, entry: CacheEntry): void
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

function textBytes(value: Value): number {
  if (typeof value === 'string') return value.length * 2
  if (Array.isArray(value)) return value.reduce<number>((sum, part) => sum + 16 + textBytes(part), 0)
  return 16
}

function plainBytes({ outputs, report }: CacheEntry): number {
  let bytes = ENTRY_BYTES
  for (const slot of outputs) for (const value of slot) bytes += textBytes(value)
  for (const items of Object.values(report ?? {})) {
    for (const item of items) bytes += item.kind === 'file' ? item.bytes.byteLength : textBytes(item.value)
  }
  return bytes
}

interface Kept {
  readonly entry: CacheEntry
  readonly buffers: ReadonlySet<SharedArrayBuffer>
  readonly plainBytes: number
}

type Ledger = Pick<MemoryLedger, 'retain' | 'release'>

export function createResultCache({ budgetBytes, ledger }: { budgetBytes: number; ledger: Ledger }): ResultCache {
  // A Map remembers insertion order: re-inserting on use makes its first key the oldest.
  const entries = new Map<string, Kept>()
  // Entries share buffers (an image that is passed through): each counts once.
  const users = new Map<SharedArrayBuffer, number>()
  let usedBytes = 0

  function add(key: string, kept: Kept): void {
    entries.set(key, kept)
    usedBytes += kept.plainBytes
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
    usedBytes -= kept.plainBytes
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

  const keyOf = (accountId: string, signature: string) => `${accountId}\n${signature}`

  return {
    get(accountId, signature) {
      const key = keyOf(accountId, signature)
      const kept = entries.get(key)
      if (kept === undefined) return null
      entries.delete(key)
      entries.set(key, kept)
      return kept.entry
    },
    set(accountId, signature, entry) {
      const key = keyOf(accountId, signature)
      const kept = { entry, buffers: buffersOf(entry.outputs), plainBytes: plainBytes(entry) }
      let wholeBytes = kept.plainBytes
      for (const buffer of kept.buffers) wholeBytes += buffer.byteLength
      if (wholeBytes > budgetBytes) return
      const old = entries.get(key)
      if (old !== undefined) drop(key, old)
      add(key, kept)
      while ((usedBytes > budgetBytes || entries.size > MAX_ENTRIES) && evictOldest()) {
        // until the newest entries fit
      }
    },
    evictOldest,
  }
}
