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
const LOAD_LIMIT_MS = 60_000
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
  const threads = new Set<Thread>()
  let waiting: Job[] = []
  let watching: NodeJS.Timeout | null = null
  let looks = 0
  const backoff = createBackoff(RESTART_PAUSE)
  let pause: NodeJS.Timeout | null = null

  function assign(): void {
    for (const thread of threads) {
      if (!thread.isReady || thread.job !== null || thread.reason !== null) continue
      const job = takeNext()
      if (job === undefined) break
      give(thread, job)
    }
    kind.showBusy(threads.values().reduce((busy, { job }) => busy + (job === null ? 0 : 1), 0))
    if (pause === null) for (let missing = countMissing(); missing > 0; missing--) openThread()
    if (isBusy()) watching ??= setInterval(watch, WATCH_EVERY_MS)
  }

  /** The longest waiting, of a run that no thread works for if there is one. */
  function takeNext(): Job | undefined {
    if (waiting.length < 2) return waiting.shift()
    const served = new Set([...threads].map(({ job }) => job?.task.cancelFlag))
    const next = waiting.findIndex(({ task }) => !served.has(task.cancelFlag))
    return waiting.splice(Math.max(0, next), 1)[0]
  }

  function countMissing(): number {
    const free = kind.size - threads.size
    if (kind.isEager) return free
    return Math.min(free, waiting.length - [...threads].filter(({ isReady }) => !isReady).length)
  }

  function isBusy(): boolean {
    return waiting.length > 0 || threads.values().some(({ job, isReady }) => job !== null || !isReady)
  }

  function give(thread: Thread, job: Job): void {
    thread.job = job
    thread.since = performance.now()
    thread.cancelSeenAt = null
    thread.cpuBefore = undefined
    thread.hasMemory = false
    thread.opened.port.postMessage(kind.toCall(job.task))
  }

  function settle(thread: Thread, isSpent: boolean, finish: (job: Job) => void): void {
    const { job } = thread
    thread.job = null
    if (isSpent) retire(thread)
    if (job !== null) finish(job)
    assign()
    if (threads.size > kind.size && thread.job === null) retire(thread)
  }

  function retire(thread: Thread): void {
    if (threads.delete(thread)) void thread.opened.worker.terminate()
  }

  const replies: {
    readonly [Type in FromThread['type']]: (thread: Thread, message: Extract<FromThread, { type: Type }>) => void
  } = {
    ready(thread) {
      thread.isReady = true
      backoff.reset()
      assign()
    },
    progress: ({ job }, { value, max, also }) => job?.task.host.progress(value, max, also),
    preview: ({ job }, { contentType, bytes }) => job?.task.host.preview(contentType, bytes),
    log: ({ job }, { text }) => job?.task.host.log(text),
    text: ({ job }, { text }) => job?.task.host.text(text),
    reserve({ job, opened }, { requestId, folder, subfolder, prefix, count }) {
      const answer = (first: number | null) => opened.port.postMessage({ type: 'numbers', requestId, first })
      job?.task.host.reserveNumbers(folder, subfolder, prefix, count).then(answer, () => answer(null))
    },
    done(thread, { result, isSpent = false }) {
      const read = readResult(result, recognise)
      if (read instanceof NodeError) settle(thread, true, ({ answer }) => answer.reject(read))
      else settle(thread, isSpent, ({ answer }) => answer.resolve(read))
    },
    failed(thread, { failure, isSpent = false }) {
      settle(thread, isSpent, ({ answer }) => answer.reject(toError(failure)))
    },
  }

  function receive(thread: Thread, message: FromThread): void {
    if (!threads.has(thread)) return
    try {
      ;(replies[message.type] as (t: Thread, m: FromThread) => void)(thread, message)
    } catch {
      // Code of custom nodes can reach into everything of its thread; whatever comes out of there must not hurt this one.
      const name = thread.job?.task.node.classType ?? 'a node'
      end(thread, new NodeError('RuntimeError', `${name} sent an answer that makes no sense`))
    }
  }

  function openThread(): void {
    const desk = openMemoryDesk(
      createMemoryAnswers(() => {
        thread.hasMemory = true
        return thread.job?.task ?? null
      }),
    )
    const thread: Thread = {
      opened: kind.open(desk.line),
      isReady: false,
      job: null,
      since: performance.now(),
      cancelSeenAt: null,
      cpuBefore: undefined,
      hasMemory: false,
      reason: null,
    }
    const { worker, port, close } = thread.opened
    port.on('message', (message) => receive(thread, message))
    worker.on('error', (error) => lose(thread, error))
    worker.on('exit', () => {
      close()
      desk[Symbol.dispose]()
      lose(thread, null)
    })
    threads.add(thread)
  }

  function lose(thread: Thread, error: Error | null): void {
    if (!threads.delete(thread)) return
    if (!thread.isReady) pauseOpening(thread.reason ?? unloadable(error))
    settle(thread, false, (job) => job.answer.reject(isCancelled(job) ? new Interrupted() : toLoss(thread, job, error)))
  }

  function pauseOpening(reason: NodeError): void {
    pause ??= setTimeout(() => {
      pause = null
      assign()
    }, backoff.nextMs())
    // Calls wait for threads that are there or on their way; the next one to be started would most likely not load either.
    if (threads.size === 0) for (const job of waiting.splice(0)) job.answer.reject(reason)
  }

  function unloadable(error: Error | null): NodeError {
    return new NodeError('RuntimeError', kind.describeFailedLoad(error?.message ?? 'its thread ended'))
  }

  /** The call fails at once, also when the thread hangs in native code and ends later, or never. */
  function end(thread: Thread, reason: NodeError): void {
    thread.reason = reason
    void thread.opened.worker.terminate()
    if (!thread.hasMemory) lose(thread, null)
  }

  function watch(): void {
    const now = performance.now()
    looks += 1
    for (const job of waiting.filter(isCancelled)) job.answer.reject(new Interrupted())
    waiting = waiting.filter((job) => !isCancelled(job))
    for (const thread of [...threads]) examine(thread, now)
    const isHeldUp = threads
      .values()
      .every(({ isReady, job, since }) => isReady && job !== null && now - since > LONG_CALL_MS)
    if (waiting.length > 0 && isHeldUp && pause === null && threads.size < kind.size * (1 + kind.furtherShare))
      openThread()
    if (isBusy() || watching === null) return
    clearInterval(watching)
    watching = null
  }

  function examine(thread: Thread, now: number): void {
    const { job, since, isReady, reason } = thread
    if (reason !== null) return
    if (!isReady && now - since > LOAD_LIMIT_MS) end(thread, unloadable(new Error('it takes too long')))
    if (job === null) return
    if (isCancelled(job)) stop(thread, now)
    else if (now - since > kind.timeoutMs) end(thread, tookTooLong(job.task, kind.timeoutMs))
    else if (looks % USAGE_LOOK_EVERY === 0) {
      void weigh(thread, kind.bufferBytes)
      if (job.task.node.cpuLimitMs !== undefined) void time(thread, job, job.task.node.cpuLimitMs)
    }
  }

  function stop(thread: Thread, now: number): void {
    if (thread.cancelSeenAt === null) {
      thread.cancelSeenAt = now
      thread.opened.port.postMessage({ type: 'cancel' })
    }
    if (now - thread.cancelSeenAt > kind.cancelGraceMs) end(thread, new NodeError('RuntimeError', 'cancelled'))
  }

  async function weigh(thread: Thread, limitBytes: number): Promise<void> {
    const { job } = thread
    // A thread that has ended meanwhile has no weight.
    const statistics = await thread.opened.worker.getHeapStatistics().catch(() => null)
    if (job === null || job !== thread.job || statistics === null) return
    if (statistics.external_memory > limitBytes) end(thread, tooMuch(job.task, limitBytes))
  }

  async function time(thread: Thread, job: Job, limitMs: number): Promise<void> {
    const usage = await thread.opened.worker.cpuUsage(thread.cpuBefore).catch(() => null)
    if (job !== thread.job || usage === null) return
    if (thread.cpuBefore === undefined) thread.cpuBefore = usage
    else if ((usage.user + usage.system) / 1000 > limitMs + CPU_GRACE_MS)
      end(thread, usedUpCpu(job.task.node.classType, limitMs))
  }

  function toLoss({ reason }: Thread, { task }: Job, error: Error | null): NodeError {
    if (reason !== null) return reason
    const { classType } = task.node
    const isMemory = (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
    if (isMemory) return new NodeError('MemoryError', `${classType} ran out of memory; its thread was replaced`)
    return new NodeError('RuntimeError', kind.describeLoss(classType))
  }

  // The first call should not wait for a thread.
  for (let missing = kind.isEager ? kind.size : Math.min(1, kind.size); missing > 0; missing--) openThread()
  assign()

  return {
    size: kind.size,
    call(task) {
      const answer = Promise.withResolvers<CallResult>()
      waiting.push({ task, answer })
      assign()
      return answer.promise
    },
    collectGarbage() {
      for (const { isReady, opened } of threads) if (isReady) opened.port.postMessage({ type: 'collect' })
    },
  }
}
