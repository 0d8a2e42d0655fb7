/**
 * The main thread's view of the log: which tickets are on disk, and the keeper, which is started when batches grow. A service
 * with little to do never has one.
 */
import { Worker } from 'node:worker_threads'
import type { KeeperData } from './log-keeper.ts'
import { createLogWords, isSynced, type LogWords, ring, WORD } from './log-words.ts'

export class LogWatch {
  readonly words: LogWords = createLogWords()
  readonly #path: string
  readonly #listeners: (() => void)[] = []
  readonly #failure = Promise.withResolvers<Error>()
  readonly #ended = Promise.withResolvers<void>()
  #hasKeeper = false
  #isClosed = false

  constructor(path: string) {
    this.#path = path
  }

  /** Resolves when the keeper dies: what it was asked to sync may not be on disk. */
  get failed(): Promise<Error> {
    return this.#failure.promise
  }

  /** The last ticket that readers may have seen. */
  get committing(): number {
    return Atomics.load(this.words, WORD.committing)
  }

  isSynced(ticket: number): boolean {
    return isSynced(this.words, ticket)
  }

  /** `listener` is called whenever further tickets are on disk. */
  onSynced(listener: () => void): void {
    this.#listeners.push(listener)
  }

  tellSynced(): void {
    for (const listener of this.#listeners) listener()
  }

  startKeeper(): void {
    if (this.#hasKeeper || this.#isClosed) return
    const workerData: KeeperData = { path: this.#path, words: this.words }
    const keeper = new Worker(new URL('./log-keeper.ts', import.meta.url), { workerData, name: 'log keeper' })
    keeper.on('message', () => this.tellSynced())
    keeper.on('error', (error) => this.#fail(error))
    keeper.on('exit', (code) => {
      this.#ended.resolve()
      if (!this.#isClosed) this.#fail(new Error(`exit code ${code}`))
    })
    this.#hasKeeper = true
  }

  /** After a failed sync the system may have dropped what it could not write: asking once more would prove nothing. */
  #fail(cause: Error): void {
    this.#failure.resolve(new Error(`The log of the store could not be synced: ${cause.message}`, { cause }))
  }

  /** Twice is harmless. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (!this.#hasKeeper) return
    Atomics.store(this.words, WORD.stop, 1)
    ring(this.words)
    await this.#ended.promise
  }
}
