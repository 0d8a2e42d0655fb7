/**
 * All sockets of one account, and how many of its jobs are under way. Every reader gets what is for it in the same order:
 * messages gather during a turn of the loop and go out together. The count follows the notices of the bus, and the store heals it.
 */
import { Batch, type EncodedBatch } from './batch.ts'
import type { SocketConnection } from './connection.ts'

export interface ChannelDeps {
  readonly accountId: string
  readonly countLive: (accountId: string) => Promise<number>
}

// A turn that produces more than this is sent in pieces.
const MAX_BATCH_BYTES = 1_048_576
const COUNT_TRIES = 3

export class AccountChannel {
  readonly accountId: string
  /** Open sockets, and requests that are about to become one. */
  holders = 0
  /** Jobs that wait for a worker, as far as their notices were heard. */
  waiting = 0
  readonly #deps: ChannelDeps
  readonly #readers = new Set<SocketConnection>()
  #batch = new Batch()
  #flushing: NodeJS.Immediate | null = null
  #live = 0
  #moves = 0
  #counted: Promise<void> | null = null

  constructor(deps: ChannelDeps) {
    this.accountId = deps.accountId
    this.#deps = deps
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0
  }

  get readers(): Iterable<SocketConnection> {
    return this.#readers
  }

  /** Jobs that are running or waiting. */
  get live(): number {
    return this.#live
  }

  /** Resolves once the count is known. */
  ready(): Promise<void> {
    this.#counted ??= this.recount().catch((error) => {
      this.#counted = null
      throw error
    })
    return this.#counted
  }

  moved(by: number): void {
    this.#moves++
    this.#live = Math.max(0, this.#live + by)
  }

  /** Asks the store. What moves while it answers may or may not be in the answer, so it is asked again. */
  async recount(): Promise<void> {
    for (let attempt = 1; attempt <= COUNT_TRIES; attempt++) {
      const before = this.#moves
      const live = await this.#deps.countLive(this.accountId)
      if (before !== this.#moves && attempt < COUNT_TRIES) continue
      this.#live = live
      return
    }
  }

  join(reader: SocketConnection, hello: Buffer): void {
    // What happened before is not for this reader.
    this.flush()
    reader.send(hello)
    this.#readers.add(reader)
  }

  leave(reader: SocketConnection): void {
    this.#readers.delete(reader)
    if (this.hasReaders || this.#flushing === null) return
    clearImmediate(this.#flushing)
    this.#flushing = null
    this.#batch = new Batch()
  }

  /** For one reader, behind everything that was said to all. */
  tell(reader: SocketConnection, frame: Buffer): void {
    this.flush()
    reader.send(frame)
  }

  /** `write` adds what the readers of this client are to get, null: all readers; without readers it is not called. */
  say(write: (batch: Batch) => void, clientId: string | null = null): void {
    if (!this.hasReaders) return
    this.#batch.clientId = clientId
    write(this.#batch)
    if (this.#batch.weight > MAX_BATCH_BYTES && !this.#batch.isOpenEnded) this.flush()
    else this.#flushing ??= setImmediate(() => this.flush())
  }

  flush(): void {
    if (this.#flushing !== null) clearImmediate(this.#flushing)
    this.#flushing = null
    if (this.#batch.isEmpty) return
    const batch = this.#batch
    this.#batch = new Batch()
    const encoded = new Map<string, EncodedBatch>()
    for (const reader of this.#readers) {
      const { dialect } = reader
      const clientId = batch.isFor(reader.clientId) ? reader.clientId : null
      // Readers that get the same share the bytes; no dialect holds a space.
      const key = clientId === null ? dialect : `${dialect} ${clientId}`
      const bytes = encoded.get(key) ?? batch.encode(dialect, clientId)
      encoded.set(key, bytes)
      reader.sendBatch(bytes)
    }
  }
}
