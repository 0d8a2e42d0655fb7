/**
 * All sockets of one account, and how many of its jobs are waiting or running. Every reader gets its messages in the same order:
 * they are gathered during a turn of the event loop and sent together. The count follows the notices of the bus and is corrected
 * from the store.
 */
import { Batch, type EncodedBatch } from './batch.ts'
import type { SocketConnection } from './connection.ts'

interface ChannelDeps {
  readonly accountId: string
  /** The counts of the store; null: it does not know the account. */
  readonly countJobs: (accountId: string) => Promise<JobCounts | null>
}

interface JobCounts {
  readonly running: number
  readonly queued: number
}

// A turn that produces more than this is sent in pieces.
const MAX_BATCH_BYTES = 1_048_576
const MAX_COUNT_ATTEMPTS = 3

export class AccountChannel {
  readonly accountId: string
  /** Open sockets, and requests that are about to become one. */
  holders = 0
  /** Jobs that wait for a worker, counted like `live`. */
  waiting = 0
  readonly #deps: ChannelDeps
  readonly #readers = new Set<SocketConnection>()
  #batch = new Batch()
  #flushing: NodeJS.Immediate | null = null
  #live = 0
  #moves = 0
  #counted: Promise<void> | null = null
  #counting = 0

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

  /** Whether the store has been asked and has not answered yet. */
  get isCounting(): boolean {
    return this.#counting > 0
  }

  /** Resolves once the count is known. */
  ready(): Promise<void> {
    this.#counted ??= this.recount().catch((error) => {
      this.#counted = null
      throw error
    })
    return this.#counted
  }

  /** A job has moved, and `by` is what that does to the count. */
  moved(by: number): void {
    this.#moves++
    this.#live = Math.max(0, this.#live + by)
  }

  /** Reads the count from the store; again when jobs moved meanwhile, because the answer may lack them. */
  async recount(): Promise<void> {
    this.#counting++
    try {
      await this.#count()
    } finally {
      this.#counting--
    }
  }

  async #count(): Promise<void> {
    for (let attempt = 1; attempt <= MAX_COUNT_ATTEMPTS; attempt++) {
      const before = this.#moves
      const counts = await this.#deps.countJobs(this.accountId)
      if (before !== this.#moves && attempt < MAX_COUNT_ATTEMPTS) continue
      const { running, queued } = counts ?? { running: 0, queued: 0 }
      this.#live = running + queued
      this.waiting = queued
      return
    }
  }

  join(reader: SocketConnection, hello: Buffer): void {
    // The messages so far are for the others.
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

  /** To one reader, after everything that was said to all so far. */
  tell(reader: SocketConnection, frame: Buffer): void {
    this.flush()
    reader.send(frame)
  }

  /** `write` adds messages for the readers of this client; null: for all readers. It is not called without readers. */
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
      // Readers that get the same messages share their bytes. The name of a dialect has no space, so the keys are unambiguous.
      const key = clientId === null ? dialect : `${dialect} ${clientId}`
      const bytes = encoded.get(key) ?? batch.encode(dialect, clientId)
      encoded.set(key, bytes)
      reader.sendBatch(bytes)
    }
  }
}
