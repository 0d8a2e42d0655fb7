/**
 * A fixed number of compute threads, one call each at a time, the rest waiting in order. A thread that dies (out of memory,
 * a crash in native code) fails the call it worked on and is replaced; one that ignores a cancel for too long is ended.
 */
import { Worker } from 'node:worker_threads'
import type { CallResult } from '../node-context.ts'
import { type FailureText, Interrupted, NodeError, toFailureText } from '../node-error.ts'
import type { ComputePool, ComputeTask } from '../run/call-node.ts'
import { type Recognise, toWireRecord } from '../wire-value.ts'
import { openMemoryDesk } from './memory-line.ts'
import type { ComputeThreadData, FromCompute, MemoryAnswer, ToCompute } from './protocol.ts'
import { fromWireResult } from './wire-result.ts'

export interface ThreadPool extends ComputePool {
  /** Every thread drops what it no longer uses. */
  collectGarbage(): void
}

// Most nodes look at the flag every few milliseconds; those that are inside a library call finish it first.
const CANCEL_GRACE_MS = 5_000
const CANCEL_LOOK_MS = 500

interface Job {
  readonly task: ComputeTask
  readonly answer: PromiseWithResolvers<CallResult>
}

interface Thread {
  readonly worker: Worker
  isReady: boolean
  job: Job | null
  callId: number
  /** When the cancel of the running call was first seen. */
  cancelSeenAt: number | null
}

export interface ComputePoolDeps {
  readonly size: number
  readonly nodeModules: readonly string[]
  readonly recognise: Recognise
}

export function createComputePool({ size, nodeModules, recognise }: ComputePoolDeps): ThreadPool {
  const threads = new Set<Thread>()
  const waiting: Job[] = []
  let nextCallId = 0

  function assign(): void {
    for (const thread of threads) {
      if (!thread.isReady || thread.job !== null) continue
      const job = waiting.shift()
      if (job === undefined) return
      give(thread, job)
    }
  }

  function give(thread: Thread, job: Job): void {
    const { node, inputs, call, cancelFlag } = job.task
    thread.job = job
    thread.callId = nextCallId++
    thread.cancelSeenAt = null
    const wire = toWireRecord(inputs)
    send(thread, { type: 'call', callId: thread.callId, classType: node.classType, inputs: wire, call, cancelFlag })
  }

  function settle(thread: Thread, finish: (job: Job) => void): void {
    const { job } = thread
    thread.job = null
    if (job !== null) finish(job)
    assign()
  }

  const replies: {
    readonly [Type in FromCompute['type']]: (thread: Thread, message: Extract<FromCompute, { type: Type }>) => void
  } = {
    ready(thread) {
      thread.isReady = true
      assign()
    },
    progress: ({ job }, { value, max, also }) => job?.task.host.progress(value, max, also),
    preview: ({ job }, { contentType, bytes }) => job?.task.host.preview(contentType, bytes),
    log: ({ job }, { text }) => job?.task.host.log(text),
    text: ({ job }, { text }) => job?.task.host.text(text),
    reserve(thread, { requestId, folder, subfolder, prefix, count }) {
      const numbers = thread.job?.task.host.reserveNumbers(folder, subfolder, prefix, count)
      numbers?.then(
        (first) => send(thread, { type: 'numbers', requestId, first }),
        () => send(thread, { type: 'numbers', requestId, first: null }),
      )
    },
    done(thread, { result }) {
      settle(thread, ({ answer }) => {
        try {
          answer.resolve(fromWireResult(result, recognise))
        } catch (error) {
          answer.reject(error)
        }
      })
    },
    failed(thread, { failure }) {
      settle(thread, ({ answer }) =>
        answer.reject(failure === 'interrupted' ? new Interrupted() : toNodeError(failure)),
      )
    },
  }

  function openThread(): void {
    const desk = openMemoryDesk((bytes) => answerMemory(thread.job?.task ?? null, bytes))
    const workerData: ComputeThreadData = { nodeModules, memory: desk.line }
    const transferList = [desk.line.port]
    const worker = new Worker(new URL('./compute-thread.ts', import.meta.url), { workerData, transferList })
    const thread: Thread = { worker, isReady: false, job: null, callId: -1, cancelSeenAt: null }
    worker.on('message', (message: FromCompute) =>
      (replies[message.type] as (t: Thread, m: FromCompute) => void)(thread, message),
    )
    worker.on('error', (error) => replace(thread, error))
    worker.on('exit', () => {
      desk[Symbol.dispose]()
      replace(thread, null)
    })
    threads.add(thread)
  }

  function replace(thread: Thread, error: Error | null): void {
    if (!threads.delete(thread)) return
    openThread()
    settle(thread, ({ answer, task }) => answer.reject(lostThread(task, error)))
  }

  function endStuckCalls(): void {
    const now = performance.now()
    for (const thread of threads) {
      const { job } = thread
      if (job === null || Atomics.load(job.task.cancelFlag, 0) === 0) continue
      thread.cancelSeenAt ??= now
      if (now - thread.cancelSeenAt > CANCEL_GRACE_MS) void thread.worker.terminate()
    }
  }

  for (let index = 0; index < size; index++) openThread()
  setInterval(endStuckCalls, CANCEL_LOOK_MS)

  return {
    size,
    call(task) {
      const answer = Promise.withResolvers<CallResult>()
      waiting.push({ task, answer })
      assign()
      return answer.promise
    },
    collectGarbage() {
      for (const thread of threads) send(thread, { type: 'collect' })
    },
  }
}

export function toNodeError({ exceptionType, message, traceback }: FailureText): NodeError {
  return new NodeError(exceptionType, message, traceback)
}

function send({ worker }: Thread, message: ToCompute): void {
  worker.postMessage(message)
}

/** Memory belongs to a call; outside of one there is none. */
export function answerMemory(task: ComputeTask | null, bytes: number): MemoryAnswer {
  try {
    if (task === null) throw new NodeError('MemoryError', 'memory was asked for outside a call')
    return { buffer: task.host.allocate(bytes) }
  } catch (error) {
    return { failure: toFailureText(error) }
  }
}

function lostThread(task: ComputeTask, error: Error | null): Error {
  if (Atomics.load(task.cancelFlag, 0) !== 0) return new Interrupted()
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return new NodeError('MemoryError', `${task.node.classType} ran out of memory; its thread was replaced`)
  }
  return new NodeError('RuntimeError', `${task.node.classType} took its compute thread down; the thread was replaced`)
}
