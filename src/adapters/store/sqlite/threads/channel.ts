/**
 * The main thread's end of a store thread. At most one batch is under way; what is asked meanwhile waits and is sent as the
 * next batch, in one message. For the writer this is group commit: all operations of a batch share one transaction, and each
 * promise settles only after that transaction is durable. What waits is bounded in number and in size.
 */
import { Worker } from 'node:worker_threads'
import { ServiceError } from '../../../../domain/errors.ts'
import { type BatchStats, StoreOpenError } from '../../../../domain/store.ts'
import {
  type Answer,
  CLOSE,
  type Failure,
  type Greeting,
  OPEN,
  type Operations,
  REPAIRED,
} from './store-thread-protocol.ts'

interface ChannelOptions {
  readonly name: string
  readonly script: URL
  readonly workerData: unknown
  /** Operations that may wait before further ones are refused. */
  readonly maxPending: number
  /** Until then the thread only loads its code. */
  readonly mayOpen?: Promise<unknown>
  readonly onRepaired?: () => void
}

export interface Channel<Ops extends Operations> {
  /** `weight`: about how many bytes the input holds, when that can be much. */
  call<Name extends keyof Ops & string>(
    name: Name,
    input: Parameters<Ops[Name]>[0],
    weight?: number,
  ): Promise<ReturnType<Ops[Name]>>
  stats(): BatchStats
  /** Resolves with the reason when the thread dies; never for a thread that was closed. */
  readonly failed: Promise<Error>
  /** Answers what was asked, then ends the thread. Twice is harmless. */
  close(): Promise<void>
}

// One transaction stays small enough that whoever waits for the next one waits milliseconds.
const MAX_BATCH_OPERATIONS = 512
const MAX_BATCH_BYTES = 16_777_216
const MAX_PENDING_BYTES = 268_435_456
// A batch and its answers are far smaller; whatever reaches this limit is a defect, and ends the thread.
const HEAP_MB = 2048

interface Waiting {
  readonly name: string
  readonly input: unknown
  readonly weight: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export class DamagedError extends Error {
  override readonly name = 'DamagedError'
}

function toError({ kind, message }: Failure): Error {
  if (kind === 'damaged') return new DamagedError(`The database is damaged: ${message}`)
  if (kind === 'defect') return new Error(`The store failed: ${message}`)
  return new ServiceError('storage_full', 'The disk that holds the data directory is full. Nothing was stored.', {
    details: { reason: 'storage_full' },
  })
}

function settle(batch: readonly Waiting[], [results, failures]: Answer): number {
  for (let index = 0; index < batch.length; index += 1) {
    const failure = failures?.get(index)
    if (failure === undefined) batch[index].resolve(results[index])
    else batch[index].reject(toError(failure))
  }
  return failures?.size ?? 0
}

function openWorker({ script, workerData, name, mayOpen = Promise.resolve() }: ChannelOptions): Promise<Worker> {
  const worker = new Worker(script, { workerData, name, resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } })
  return new Promise((resolve, reject) => {
    mayOpen.then(
      () => worker.postMessage(OPEN),
      () => worker.postMessage(CLOSE),
    )
    const onExit = (code: number) => reject(new Error(`The ${name} thread of the store ended at once (code ${code}).`))
    worker.once('error', reject)
    worker.once('exit', onExit)
    worker.once('message', (greeting: Greeting) => {
      worker.off('error', reject)
      worker.off('exit', onExit)
      if (greeting.opened) return resolve(worker)
      const { reason, message } = greeting
      // Rejected only once the thread is gone: until then it may hold the database, and a second attempt would find it locked.
      worker.once('exit', () => reject(reason === null ? new Error(message) : new StoreOpenError(reason, message)))
    })
  })
}

export async function openChannel<Ops extends Operations>(options: ChannelOptions): Promise<Channel<Ops>> {
  return new ThreadChannel<Ops>(await openWorker(options), options)
}

class ThreadChannel<Ops extends Operations> implements Channel<Ops> {
  readonly #worker: Worker
  readonly #name: string
  readonly #maxPending: number
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #underway: Waiting[] | null = null
  #isScheduled = false
  #isClosing = false
  #fault: Error | null = null
  readonly #counters = { batches: 0, operations: 0, largestBatch: 0, failedOperations: 0 }
  readonly #failure = Promise.withResolvers<Error>()
  readonly #exited = Promise.withResolvers<void>()
  readonly #drained = Promise.withResolvers<void>()

  constructor(worker: Worker, { name, maxPending, onRepaired = () => {} }: ChannelOptions) {
    this.#worker = worker
    this.#name = name
    this.#maxPending = maxPending
    worker.on('message', (message: Answer | typeof REPAIRED) => {
      if (message === REPAIRED) onRepaired()
      else this.#onAnswer(message)
    })
    worker.on('error', (error) => this.#fail(error))
    worker.on('messageerror', (error) => this.#fail(error))
    worker.on('exit', (code) => {
      if (!this.#isClosing || this.#underway !== null) this.#fail(new Error(`exit code ${code}`))
      this.#exited.resolve()
    })
  }

  get failed(): Promise<Error> {
    return this.#failure.promise
  }

  call<Name extends keyof Ops & string>(
    name: Name,
    input: Parameters<Ops[Name]>[0],
    weight = 0,
  ): Promise<ReturnType<Ops[Name]>> {
    const refused = this.#refusal(weight)
    if (refused !== null) return Promise.reject(refused)
    if (!this.#isScheduled && this.#underway === null) {
      this.#isScheduled = true
      // Requests that this turn of the event loop still has to read join the batch.
      setImmediate(() => this.#send())
    }
    this.#waitingBytes += weight
    return new Promise((resolve, reject) => {
      this.#waiting.push({ name, input, weight, resolve: resolve as (result: unknown) => void, reject })
    })
  }

  stats(): BatchStats {
    return { ...this.#counters, pending: this.#waiting.length + (this.#underway?.length ?? 0) }
  }

  async close(): Promise<void> {
    if (!this.#isClosing) {
      this.#isClosing = true
      this.#send()
      await this.#drained.promise
      if (this.#fault === null) this.#worker.postMessage(CLOSE)
    }
    await this.#exited.promise
  }

  #refusal(weight: number): Error | null {
    if (this.#fault !== null) return this.#fault
    if (this.#isClosing) {
      return new ServiceError('shutting_down', 'The service is stopping.', { retryAfterSeconds: 5 })
    }
    if (this.#waiting.length < this.#maxPending && this.#waitingBytes + weight <= MAX_PENDING_BYTES) return null
    return new ServiceError('queue_full', 'The store cannot keep up with the requests. Try again in a moment.', {
      retryAfterSeconds: 1,
    })
  }

  #send(): void {
    this.#isScheduled = false
    if (this.#underway !== null || this.#fault !== null) return
    if (this.#waiting.length === 0) {
      if (this.#isClosing) this.#drained.resolve()
      return
    }
    const batch = this.#takeBatch()
    this.#underway = batch
    this.#counters.batches += 1
    this.#counters.operations += batch.length
    this.#counters.largestBatch = Math.max(this.#counters.largestBatch, batch.length)
    this.#worker.postMessage([batch.map(({ name }) => name), batch.map(({ input }) => input)])
  }

  #takeBatch(): Waiting[] {
    const waiting = this.#waiting
    let bytes = 0
    let count = 0
    while (count < waiting.length && count < MAX_BATCH_OPERATIONS && bytes < MAX_BATCH_BYTES) {
      bytes += waiting[count].weight
      count += 1
    }
    this.#waitingBytes -= bytes
    this.#waiting = waiting.slice(count)
    return count === waiting.length ? waiting : waiting.slice(0, count)
  }

  #onAnswer(answer: Answer): void {
    const batch = this.#underway ?? []
    this.#underway = null
    // The thread gets its next batch before this one's callers run: it works while they do.
    this.#send()
    this.#counters.failedOperations += settle(batch, answer)
  }

  #fail(cause: unknown): void {
    if (this.#fault !== null) return
    const reason = cause instanceof Error ? cause.message : String(cause)
    const fault = new Error(`The ${this.#name} thread of the store stopped: ${reason}`, { cause })
    this.#fault = fault
    const lost = [...(this.#underway ?? []), ...this.#waiting]
    this.#underway = null
    this.#waiting = []
    for (const { reject } of lost) reject(fault)
    this.#failure.resolve(fault)
    this.#drained.resolve()
  }
}
