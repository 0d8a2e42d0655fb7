/**
 * A number of compute threads, one call each at a time, the rest waiting in order. A thread that dies (out of memory, a crash in
 * native code) fails the call it worked on and is replaced; one that works on a call for too long, or ignores a cancel, is ended.
 * While every thread is held by a long call, further ones are opened for a while, so that short calls of others go on.
 */

import { Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/thread-heap.ts'
import type { CallResult } from '../node/node-context.ts'
import { type FailureText, Interrupted, NodeError, toFailureText } from '../node/node-error.ts'
import type { ComputePool, ComputeTask } from '../run/calls/call-node.ts'
import { type Recognise, toWireRecord } from '../values/wire-value.ts'
import { openMemoryDesk } from './memory-line.ts'
import type { ComputeThreadData, FromCompute, MemoryAnswer, MemoryRequest, ToCompute } from './protocol.ts'
import { fromWireResult } from './wire-result.ts'

export interface ThreadPool extends ComputePool {
  /** Every thread drops what it no longer uses. */
  collectGarbage(): void
}

// Most nodes look at the flag every few milliseconds; those that are inside a library call finish it first.
const CANCEL_GRACE_MS = 5_000
const LOOK_MS = 500
// A call that has taken so long may take much longer.
const LONG_CALL_MS = 2_000
// Further threads at most, for each of the pool's own.
const MAX_FURTHER_SHARE = 2
// What nodes build of texts and lists; tensors lie elsewhere.
const HEAP_MB = 1024

interface Job {
  readonly task: ComputeTask
  readonly answer: PromiseWithResolvers<CallResult>
}

interface Thread {
  readonly worker: Worker
  isReady: boolean
  job: Job | null
  callId: number
  /** Since when it has been working on its call. */
  since: number
  /** When the cancel of the running call was first seen. */
  cancelSeenAt: number | null
  /** Why we ended it. */
  reason: NodeError | null
}

export interface ComputePoolDeps {
  readonly size: number
  /** The longest time that one call may take. */
  readonly timeoutMs: number
  readonly nodeModules: readonly string[]
  readonly recognise: Recognise
}

export function createComputePool({ size, timeoutMs, nodeModules, recognise }: ComputePoolDeps): ThreadPool {
  const threads = new Set<Thread>()
  const waiting: Job[] = []
  let nextCallId = 0

  function assign(): void {
    for (const thread of threads) {
      if (!thread.isReady || thread.job !== null) continue
      const job = takeNext()
      if (job === undefined) return
      give(thread, job)
    }
  }

  /** The longest waiting, of a run that no thread works for if there is one. */
  function takeNext(): Job | undefined {
    const served = new Set([...threads].map(({ job }) => job?.task.cancelFlag))
    const next = waiting.findIndex(({ task }) => !served.has(task.cancelFlag))
    return waiting.splice(Math.max(0, next), 1)[0]
  }

  function give(thread: Thread, job: Job): void {
    const { node, inputs, call, cancelFlag } = job.task
    thread.job = job
    thread.callId = nextCallId++
    thread.since = performance.now()
    thread.cancelSeenAt = null
    const wire = toWireRecord(inputs)
    send(thread, { type: 'call', callId: thread.callId, classType: node.classType, inputs: wire, call, cancelFlag })
  }

  function settle(thread: Thread, finish: (job: Job) => void): void {
    const { job } = thread
    thread.job = null
    if (job !== null) finish(job)
    assign()
    if (threads.size > size && thread.job === null && threads.delete(thread)) void thread.worker.terminate()
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
    const desk = openMemoryDesk(createMemoryAnswers(() => thread.job?.task ?? null))
    const workerData: ComputeThreadData = { nodeModules, memory: desk.line }
    const transferList = [desk.line.port]
    const worker = new Worker(new URL('./compute-thread.ts', import.meta.url), {
      workerData,
      transferList,
      resourceLimits: toHeapLimits(HEAP_MB),
    })
    const thread: Thread = {
      worker,
      isReady: false,
      job: null,
      callId: -1,
      since: 0,
      cancelSeenAt: null,
      reason: null,
    }
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
    if (threads.size < size) openThread()
    settle(thread, ({ answer, task }) => answer.reject(thread.reason ?? lostThread(task, error)))
  }

  function look(): void {
    const now = performance.now()
    for (const thread of threads) endStuckCall(thread, now)
    const isHeldUp = [...threads].every(
      ({ isReady, job, since }) => isReady && job !== null && now - since > LONG_CALL_MS,
    )
    if (waiting.length > 0 && isHeldUp && threads.size < size * (1 + MAX_FURTHER_SHARE)) openThread()
  }

  function endStuckCall(thread: Thread, now: number): void {
    const { job, since } = thread
    if (job === null) return
    if (Atomics.load(job.task.cancelFlag, 0) !== 0) {
      thread.cancelSeenAt ??= now
      if (now - thread.cancelSeenAt > CANCEL_GRACE_MS) void thread.worker.terminate()
    } else if (now - since > timeoutMs && thread.reason === null) {
      thread.reason = tookTooLong(job.task, timeoutMs)
      void thread.worker.terminate()
    }
  }

  for (let index = 0; index < size; index++) openThread()
  setInterval(look, Math.min(LOOK_MS, timeoutMs))

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

export function tookTooLong({ node }: ComputeTask, timeoutMs: number): NodeError {
  const limit = timeoutMs < 1000 ? `${timeoutMs} ms` : `${timeoutMs / 1000} s`
  const message = `${node.classType} did not finish within ${limit} (setting nodeTimeout); its thread was ended`
  return new NodeError('TimeoutError', message)
}

export function toNodeError({ exceptionType, message, traceback }: FailureText): NodeError {
  return new NodeError(exceptionType, message, traceback)
}

function send({ worker }: Thread, message: ToCompute): void {
  worker.postMessage(message)
}

/** Memory belongs to a call; outside of one there is none. */
export function createMemoryAnswers(currentTask: () => ComputeTask | null) {
  let unreserve = () => {}

  async function answer(request: Exclude<MemoryRequest, { type: 'unreserve' }>): Promise<MemoryAnswer> {
    try {
      const task = currentTask()
      if (task === null) throw new NodeError('MemoryError', 'memory was asked for outside a call')
      if (request.type === 'allocate') return { buffer: task.host.allocate(request.bytes) }
      unreserve = await task.host.reserve(request.bytes, request.besideBytes)
      return { buffer: null }
    } catch (error) {
      return { failure: toFailureText(error) }
    }
  }

  return (request: MemoryRequest): Promise<MemoryAnswer> | null => {
    if (request.type !== 'unreserve') return answer(request)
    unreserve()
    return null
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
