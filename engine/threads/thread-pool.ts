/**
 * Threads that work on one call each at a time, the rest of the calls waiting in order. A thread that dies fails the call that it
 * worked on, and another takes its place; one that works on a call for too long, or ignores a cancel, is ended. A thread that dies
 * while it loads would do so again at once: the next one is started after a pause, which grows. What the threads run, and how they
 * are started, is defined by their kind.
 */
import type { Worker } from 'node:worker_threads'
import { createBackoff } from '../../lib/waiting/sleep.ts'
import type { CallResult } from '../node/node-context.ts'
import { Interrupted, NodeError, usedUpCpu } from '../node/node-error.ts'
import type { ComputePool, ComputeTask } from '../run/calls/call-node.ts'
import type { Recognise } from '../values/wire-value.ts'
import { createMemoryAnswers, openMemoryDesk } from './memory-line.ts'
import {
  type CallMessage,
  type FromThread,
  type MemoryLine,
  readResult,
  type ToThread,
  toError,
  tookTooLong,
  tooMuch,
} from './protocol.ts'

// What a pool has to know of the threads that it keeps.

interface ThreadPort {
  postMessage(message: ToThread<unknown>): void
  on(event: 'message', listener: (message: FromThread) => void): unknown
}

export interface OpenedThread {
  readonly worker: Worker
  /** Where calls go and answers come from. */
  readonly port: ThreadPort
  /** Called once the thread has ended. */
  close(): void
}

export interface ThreadKind {
  readonly size: number
  /** All threads are started at once and kept; otherwise the first one, and others when calls wait. */
  readonly isEager: boolean
  /** How many further threads, for each of the pool's own, may be opened while all of these are held by long calls. */
  readonly furtherShare: number
  /** The longest time that one call may take. */
  readonly timeoutMs: number
  /** How long a thread may load before it is replaced; null: for as long as it needs, because it loads nothing but our own code. */
  readonly loadLimitMs: number | null
  /** After so many threads in a row that ended while they loaded, calls are told why; until then they wait for the next one. */
  readonly loadTries: number
  /** How long a call may go on after its cancel. */
  readonly cancelGraceMs: number
  /** What the buffers of one thread may occupy beside tensors. */
  readonly bufferBytes: number
  /** Told whenever the number of threads with a call may have changed. */
  showBusy(threads: number): void
  /** `memory` is the thread's line to the engine's memory, whose port has to be transferred. */
  open(memory: MemoryLine): OpenedThread
  toCall(task: ComputeTask): CallMessage<unknown>
  /** Why a call failed whose thread ended without being told to. */
  describeLoss(classType: string): string
  describeFailedLoad(why: string): string
}

export interface ThreadPool extends ComputePool {
  /** Every thread drops what it no longer uses. */
  collectGarbage(): void
}

// How often calls are looked at while there are any.
const WATCH_EVERY_MS = 25
const USAGE_LOOK_EVERY = 10
// A call that has taken so long may take much longer.
const LONG_CALL_MS = 2_000
// A node that looks at its processor time by itself stops before this; one that is inside a long loop is ended with its thread.
const CPU_GRACE_MS = 1_000
const RESTART_PAUSE = { firstMs: 200, maxMs: 5_000 }

interface Job {
  readonly task: ComputeTask
  readonly answer: PromiseWithResolvers<CallResult>
}

interface Thread {
  readonly opened: OpenedThread
  isReady: boolean
  job: Job | null
  /** Since when it has been working on its call, or loading. */
  since: number
  /** When the cancel of the running call was first seen. */
  cancelSeenAt: number | null
  /** What the thread had used when the running call was first looked at, in microseconds. */
  cpuBefore: NodeJS.CpuUsage | undefined
  /** Memory of the engine is in its hands: it must be gone before anybody else may use that. */
  hasMemory: boolean
  /** Why it was ended. */
  reason: NodeError | null
}

const isCancelled = ({ task }: Job) => Atomics.load(task.cancelFlag, 0) !== 0

export function createThreadPool(kind: ThreadKind, recognise: Recognise): ThreadPool {
  const pool = new CallThreads(kind, recognise)
  return {
    size: kind.size,
    call(task) {
      const answer = Promise.withResolvers<CallResult>()
      pool.waiting.push({ task, answer })
      pool.assign()
      return answer.promise
    },
    collectGarbage() {
      for (const { isReady, opened } of pool.threads) if (isReady) opened.port.postMessage({ type: 'collect' })
    },
  }
}

class CallThreads {
  readonly #kind: ThreadKind
  readonly #recognise: Recognise
  readonly threads = new Set<Thread>()
  waiting: Job[] = []
  #watching: NodeJS.Timeout | null = null
  #looks = 0
  readonly #backoff = createBackoff(RESTART_PAUSE)
  #pause: NodeJS.Timeout | null = null
  /** Since a thread was last ready, how often the threads that were started together all ended or were given up. */
  #failedLoads = 0
  readonly #replies: {
    readonly [Type in FromThread['type']]: (thread: Thread, message: Extract<FromThread, { type: Type }>) => void
  } = {
    ready: (thread) => {
      thread.isReady = true
      this.#backoff.reset()
      this.#failedLoads = 0
      this.assign()
    },
    progress: ({ job }, { value, max, also }) => job?.task.host.progress(value, max, also),
    preview: ({ job }, { contentType, bytes }) => job?.task.host.preview(contentType, bytes),
    log: ({ job }, { text }) => job?.task.host.log(text),
    text: ({ job }, { text }) => job?.task.host.text(text),
    reserve({ job, opened }, { requestId, folder, subfolder, prefix, count }) {
      const answer = (first: number | null) => opened.port.postMessage({ type: 'numbers', requestId, first })
      job?.task.host.reserveNumbers(folder, subfolder, prefix, count).then(answer, () => answer(null))
    },
    done: (thread, { result, isSpent = false }) => {
      const read = readResult(result, this.#recognise)
      if (read instanceof NodeError) this.#settle(thread, true, ({ answer }) => answer.reject(read))
      else this.#settle(thread, isSpent, ({ answer }) => answer.resolve(read))
    },
    failed: (thread, { failure, isSpent = false }) => {
      this.#settle(thread, isSpent, ({ answer }) => answer.reject(toError(failure)))
    },
  }

  constructor(kind: ThreadKind, recognise: Recognise) {
    this.#kind = kind
    this.#recognise = recognise
    // The first call should not wait for a thread.
    for (let missing = this.#kind.isEager ? this.#kind.size : Math.min(1, this.#kind.size); missing > 0; missing--)
      this.#openThread()
    this.assign()
  }

  assign(): void {
    for (const thread of this.threads) {
      if (!thread.isReady || thread.job !== null || thread.reason !== null) continue
      const job = this.#takeNext()
      if (job === undefined) break
      this.#give(thread, job)
    }
    this.#kind.showBusy(this.threads.values().reduce((busy, { job }) => busy + (job === null ? 0 : 1), 0))
    if (this.#pause === null) for (let missing = this.#countMissing(); missing > 0; missing--) this.#openThread()
    if (this.#isBusy()) this.#watching ??= setInterval(() => this.#watch(), WATCH_EVERY_MS)
  }

  /** The longest waiting, of a run that no thread works for if there is one. */
  #takeNext(): Job | undefined {
    if (this.waiting.length < 2) return this.waiting.shift()
    const served = new Set([...this.threads].map(({ job }) => job?.task.cancelFlag))
    const next = this.waiting.findIndex(({ task }) => !served.has(task.cancelFlag))
    return this.waiting.splice(Math.max(0, next), 1)[0]
  }

  #countMissing(): number {
    const free = this.#kind.size - this.threads.size
    if (this.#kind.isEager) return free
    return Math.min(free, this.waiting.length - [...this.threads].filter(({ isReady }) => !isReady).length)
  }

  #isBusy(): boolean {
    return this.waiting.length > 0 || this.threads.values().some(({ job, isReady }) => job !== null || !isReady)
  }

  #give(thread: Thread, job: Job): void {
    thread.job = job
    thread.since = performance.now()
    thread.cancelSeenAt = null
    thread.cpuBefore = undefined
    thread.hasMemory = false
    thread.opened.port.postMessage(this.#kind.toCall(job.task))
  }

  #settle(thread: Thread, isSpent: boolean, finish: (job: Job) => void): void {
    const { job } = thread
    thread.job = null
    if (isSpent) this.#retire(thread)
    if (job !== null) finish(job)
    this.assign()
    if (this.threads.size > this.#kind.size && thread.job === null) this.#retire(thread)
  }

  #retire(thread: Thread): void {
    if (this.threads.delete(thread)) void thread.opened.worker.terminate()
  }

  #receive(thread: Thread, message: FromThread): void {
    if (!this.threads.has(thread)) return
    try {
      ;(this.#replies[message.type] as (t: Thread, m: FromThread) => void)(thread, message)
    } catch {
      // Code of custom nodes can reach into everything of its thread; whatever comes out of there must not hurt this one.
      const name = thread.job?.task.node.classType ?? 'a node'
      this.#end(thread, new NodeError('RuntimeError', `${name} sent an answer that makes no sense`))
    }
  }

  #openThread(): void {
    const desk = openMemoryDesk(
      createMemoryAnswers(() => {
        thread.hasMemory = true
        return thread.job?.task ?? null
      }),
    )
    const thread: Thread = {
      opened: this.#kind.open(desk.line),
      isReady: false,
      job: null,
      since: performance.now(),
      cancelSeenAt: null,
      cpuBefore: undefined,
      hasMemory: false,
      reason: null,
    }
    const { worker, port, close } = thread.opened
    port.on('message', (message) => this.#receive(thread, message))
    worker.on('error', (error) => this.#lose(thread, error))
    worker.on('exit', () => {
      close()
      desk[Symbol.dispose]()
      this.#lose(thread, null)
    })
    this.threads.add(thread)
  }

  #lose(thread: Thread, error: Error | null): void {
    if (!this.threads.delete(thread)) return
    if (!thread.isReady) this.#pauseOpening(thread.reason ?? this.#unloadable(error))
    this.#settle(thread, false, (job) =>
      job.answer.reject(isCancelled(job) ? new Interrupted() : this.#toLoss(thread, job, error)),
    )
  }

  #pauseOpening(reason: NodeError): void {
    if (this.#pause === null) {
      this.#failedLoads += 1
      this.#pause = setTimeout(() => {
        this.#pause = null
        this.assign()
      }, this.#backoff.nextMs())
    }
    // Calls wait for threads that are there or on their way; after some tries the next one would most likely not load either.
    if (this.threads.size === 0 && this.#failedLoads >= this.#kind.loadTries)
      for (const job of this.waiting.splice(0)) job.answer.reject(reason)
  }

  #unloadable(error: Error | null): NodeError {
    return new NodeError('RuntimeError', this.#kind.describeFailedLoad(error?.message ?? 'its thread ended'))
  }

  /** The call fails at once, also when the thread hangs in native code and ends later, or never. */
  #end(thread: Thread, reason: NodeError): void {
    thread.reason = reason
    void thread.opened.worker.terminate()
    if (!thread.hasMemory) this.#lose(thread, null)
  }

  #watch(): void {
    const now = performance.now()
    this.#looks += 1
    for (const job of this.waiting.filter(isCancelled)) job.answer.reject(new Interrupted())
    this.waiting = this.waiting.filter((job) => !isCancelled(job))
    for (const thread of [...this.threads]) this.#examine(thread, now)
    const isHeldUp = this.threads
      .values()
      .every(({ isReady, job, since }) => isReady && job !== null && now - since > LONG_CALL_MS)
    if (
      this.waiting.length > 0 &&
      isHeldUp &&
      this.#pause === null &&
      this.threads.size < this.#kind.size * (1 + this.#kind.furtherShare)
    )
      this.#openThread()
    if (this.#isBusy() || this.#watching === null) return
    clearInterval(this.#watching)
    this.#watching = null
  }

  #examine(thread: Thread, now: number): void {
    const { job, since, isReady, reason } = thread
    if (reason !== null) return
    const { loadLimitMs } = this.#kind
    if (!isReady && loadLimitMs !== null && now - since > loadLimitMs)
      this.#end(thread, this.#unloadable(new Error('it takes too long')))
    if (job === null) return
    if (isCancelled(job)) this.#stop(thread, now)
    else if (now - since > this.#kind.timeoutMs) this.#end(thread, tookTooLong(job.task, this.#kind.timeoutMs))
    else if (this.#looks % USAGE_LOOK_EVERY === 0) {
      void this.#weigh(thread, this.#kind.bufferBytes)
      if (job.task.node.cpuLimitMs !== undefined) void this.#time(thread, job, job.task.node.cpuLimitMs)
    }
  }

  #stop(thread: Thread, now: number): void {
    if (thread.cancelSeenAt === null) {
      thread.cancelSeenAt = now
      thread.opened.port.postMessage({ type: 'cancel' })
    }
    if (now - thread.cancelSeenAt > this.#kind.cancelGraceMs)
      this.#end(thread, new NodeError('RuntimeError', 'cancelled'))
  }

  async #weigh(thread: Thread, limitBytes: number): Promise<void> {
    const { job } = thread
    // A thread that has ended meanwhile has no weight.
    const statistics = await thread.opened.worker.getHeapStatistics().catch(() => null)
    if (job === null || job !== thread.job || statistics === null) return
    if (statistics.external_memory > limitBytes) this.#end(thread, tooMuch(job.task, limitBytes))
  }

  async #time(thread: Thread, job: Job, limitMs: number): Promise<void> {
    const usage = await thread.opened.worker.cpuUsage(thread.cpuBefore).catch(() => null)
    if (job !== thread.job || usage === null) return
    if (thread.cpuBefore === undefined) thread.cpuBefore = usage
    else if ((usage.user + usage.system) / 1000 > limitMs + CPU_GRACE_MS)
      this.#end(thread, usedUpCpu(job.task.node.classType, limitMs))
  }

  #toLoss({ reason }: Thread, { task }: Job, error: Error | null): NodeError {
    if (reason !== null) return reason
    const { classType } = task.node
    const isMemory = (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
    if (isMemory) return new NodeError('MemoryError', `${classType} ran out of memory; its thread was replaced`)
    return new NodeError('RuntimeError', this.#kind.describeLoss(classType))
  }
}
