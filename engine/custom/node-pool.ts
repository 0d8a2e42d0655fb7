/**
 * The threads of custom nodes: one call each at a time, the first opened at once, others when they are needed. They are nobody else's, so a node
 * that hangs holds up other custom nodes at most. A call that takes too long, uses too much memory or ignores a cancel
 * loses its thread; the next call gets a new one.
 */

import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/thread-heap.ts'
import type { CallResult } from '../node/node-context.ts'
import { Interrupted, NodeError } from '../node/node-error.ts'
import type { ComputeTask } from '../run/calls/call-node.ts'
import { createMemoryAnswers, type ThreadPool, toNodeError, tookTooLong } from '../threads/compute-pool.ts'
import { openMemoryDesk } from '../threads/memory-line.ts'
import { fromWireResult } from '../threads/wire-result.ts'
import { type Recognise, toWireRecord } from '../values/wire-value.ts'
import type { CustomNodes, NodeLimits } from './custom-nodes.ts'
import type { FromNodeThread, NodeThreadStart, ToNodeThread } from './protocol.ts'

export interface NodePoolDeps {
  readonly size: number
  readonly nodes: CustomNodes
  readonly limits: NodeLimits
  readonly recognise: Recognise
}

// A node that listens to its signal is done within milliseconds; one that does not will not be any more.
const CANCEL_GRACE_MS = 2_000
const LOAD_LIMIT_MS = 60_000
const WATCH_EVERY_MS = 25
const MEMORY_LOOK_EVERY = 10
const MIB = 1_048_576

interface Job {
  readonly task: ComputeTask
  readonly answer: PromiseWithResolvers<CallResult>
}

interface Thread {
  readonly worker: Worker
  readonly port: MessagePort
  isReady: boolean
  job: Job | null
  /** Since when it has been working on its call, or loading. */
  since: number
  cancelSeenAt: number | null
  /** Memory of the engine is in its hands: it must be gone before anybody else may use that. */
  hasMemory: boolean
  /** Why we ended it. */
  reason: NodeError | null
}

const isCancelled = ({ task }: Job) => Atomics.load(task.cancelFlag, 0) !== 0

export function createNodePool({ size, nodes, limits, recognise }: NodePoolDeps): ThreadPool {
  const threads = new Set<Thread>()
  let waiting: Job[] = []
  let watching: NodeJS.Timeout | null = null
  let looks = 0

  function assign(): void {
    for (const thread of threads) {
      if (!thread.isReady || thread.job !== null) continue
      const job = waiting.shift()
      if (job === undefined) break
      give(thread, job)
    }
    let opening = 0
    for (const thread of threads) if (!thread.isReady) opening += 1
    for (; opening < waiting.length && threads.size < size; opening++) openThread()
    keepWatch()
  }

  function give(thread: Thread, job: Job): void {
    const { node, inputs, call, cancelFlag } = job.task
    thread.job = job
    thread.since = performance.now()
    thread.cancelSeenAt = null
    thread.hasMemory = false
    const wire = toWireRecord(inputs)
    send(thread, { type: 'call', classType: node.classType, nodeId: call.nodeId, inputs: wire, cancelFlag })
  }

  function settle(thread: Thread, isSpent: boolean, finish: (job: Job) => void): void {
    const { job } = thread
    thread.job = null
    if (isSpent) retire(thread)
    if (job !== null) finish(job)
    assign()
  }

  function retire(thread: Thread): void {
    threads.delete(thread)
    void thread.worker.terminate()
  }

  const replies: {
    readonly [Type in FromNodeThread['type']]: (t: Thread, message: Extract<FromNodeThread, { type: Type }>) => void
  } = {
    ready(thread) {
      thread.isReady = true
      assign()
    },
    progress: ({ job }, { value, max, picture }) => job?.task.host.progress(value, max, { picture }),
    preview: ({ job }, { contentType, bytes }) => job?.task.host.preview(contentType, bytes),
    log: ({ job }, { text }) => job?.task.host.log(text),
    done(thread, { result, isSpent }) {
      const read = fromWireResult(result, recognise)
      settle(thread, isSpent, ({ answer }) => answer.resolve(read))
    },
    failed(thread, { failure, isSpent }) {
      const error = failure === 'interrupted' ? new Interrupted() : toNodeError(failure)
      settle(thread, isSpent, ({ answer }) => answer.reject(error))
    },
  }

  function receive(thread: Thread, message: FromNodeThread): void {
    try {
      ;(replies[message.type] as (t: Thread, m: FromNodeThread) => void)(thread, message)
    } catch {
      // Node code can reach into everything of its own thread; whatever comes out of it must not hurt this one.
      end(thread, new NodeError('RuntimeError', `${nameOf(thread)} sent an answer that makes no sense`))
    }
  }

  function openThread(): void {
    const { port1, port2 } = new MessageChannel()
    const desk = openMemoryDesk(
      createMemoryAnswers(() => {
        thread.hasMemory = true
        return thread.job?.task ?? null
      }),
    )
    const worker = new Worker(new URL('./node-thread.ts', import.meta.url), {
      // No variables: the service's own hold secrets.
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: toHeapLimits(limits.heapBytes / MIB),
    })
    worker.stdout.resume()
    worker.stderr.resume()
    const { folders, modules, sources } = nodes
    const { bufferBytes } = limits
    const start: NodeThreadStart = { port: port2, memory: desk.line, nodes: { folders, modules, sources }, bufferBytes }
    worker.postMessage(start, [port2, desk.line.port])
    const thread: Thread = {
      worker,
      port: port1,
      isReady: false,
      job: null,
      since: performance.now(),
      cancelSeenAt: null,
      hasMemory: false,
      reason: null,
    }
    port1.on('message', (message: FromNodeThread) => receive(thread, message))
    worker.on('error', (error) => lose(thread, error))
    worker.on('exit', () => {
      port1.close()
      desk[Symbol.dispose]()
      lose(thread, null)
    })
    threads.add(thread)
  }

  function lose(thread: Thread, error: Error | null): void {
    if (!threads.delete(thread)) return
    // Another one would not load either: nobody waits for it.
    if (!thread.isReady) for (const job of waiting.splice(0)) job.answer.reject(thread.reason ?? unloadable(error))
    settle(thread, false, (job) => job.answer.reject(isCancelled(job) ? new Interrupted() : toLoss(thread, job, error)))
  }

  /** The call fails at once, also when the thread hangs in native code and ends later, or never. */
  function end(thread: Thread, reason: NodeError): void {
    thread.reason = reason
    void thread.worker.terminate()
    if (!thread.hasMemory) lose(thread, null)
  }

  function keepWatch(): void {
    const isBusy = waiting.length > 0 || [...threads].some(({ job, isReady }) => job !== null || !isReady)
    if (isBusy) watching ??= setInterval(watch, WATCH_EVERY_MS)
    else if (watching !== null) {
      clearInterval(watching)
      watching = null
    }
  }

  function watch(): void {
    const now = performance.now()
    for (const job of waiting.filter(isCancelled)) job.answer.reject(new Interrupted())
    waiting = waiting.filter((job) => !isCancelled(job))
    looks += 1
    for (const thread of [...threads]) {
      const { job, since, isReady, reason } = thread
      if (reason !== null) continue
      if (!isReady && now - since > LOAD_LIMIT_MS) end(thread, unloadable(new Error('it takes too long')))
      if (job === null) continue
      if (isCancelled(job)) stop(thread, now)
      else if (now - since > limits.timeoutMs) end(thread, tookTooLong(job.task, limits.timeoutMs))
      else if (looks % MEMORY_LOOK_EVERY === 0) void weigh(thread)
    }
    keepWatch()
  }

  function stop(thread: Thread, now: number): void {
    if (thread.cancelSeenAt === null) {
      thread.cancelSeenAt = now
      send(thread, { type: 'cancel' })
    }
    if (now - thread.cancelSeenAt > CANCEL_GRACE_MS) end(thread, new NodeError('RuntimeError', 'cancelled'))
  }

  async function weigh(thread: Thread): Promise<void> {
    const { job } = thread
    // A thread that has ended meanwhile has no weight.
    const statistics = await thread.worker.getHeapStatistics().catch(() => null)
    if (job === null || job !== thread.job || statistics === null) return
    if (statistics.external_memory > limits.bufferBytes) end(thread, tooMuch(job, limits.bufferBytes))
  }

  // The first call of the service should not wait for a thread.
  if (size > 0) openThread()

  return {
    size,
    call(task) {
      const answer = Promise.withResolvers<CallResult>()
      waiting.push({ task, answer })
      assign()
      return answer.promise
    },
    collectGarbage() {
      for (const thread of threads) if (thread.isReady) send(thread, { type: 'collect' })
    },
  }
}

function send({ port }: Thread, message: ToNodeThread): void {
  port.postMessage(message)
}

function nameOf({ job }: Thread): string {
  return job?.task.node.classType ?? 'a custom node'
}

function unloadable(error: Error | null): NodeError {
  const why = error?.message ?? 'its thread ended'
  return new NodeError('RuntimeError', `the custom nodes could not be loaded again (${why}); restart the service`)
}

function tooMuch({ task }: Job, bytes: number): NodeError {
  const limit = `${Math.ceil(bytes / MIB)} MiB`
  return new NodeError('MemoryError', `${task.node.classType} held more than ${limit} in buffers; its thread was ended`)
}

function toLoss({ reason }: Thread, { task }: Job, error: Error | null): NodeError {
  if (reason !== null) return reason
  if ((error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new NodeError('MemoryError', `${task.node.classType} ran out of memory; its thread was replaced`)
  }
  return new NodeError('RuntimeError', `${task.node.classType} ended its thread; the thread was replaced`)
}
