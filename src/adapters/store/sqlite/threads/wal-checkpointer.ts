/**
 * The main thread's side of the checkpointer thread, which copies the WAL into the database while the writer writes on. The
 * thread is started when the WAL is long and ended when that has not happened for a while: a service with little to do has
 * none. It only helps: when it is late or gone, the writer checkpoints by itself.
 */
import { Worker } from 'node:worker_threads'
import type { CheckpointerData } from './checkpointer-thread.ts'

export interface WalCheckpointer {
  /** The WAL is long. Does nothing while a checkpoint is under way. */
  request(): void
  /** Twice is harmless. */
  close(): Promise<void>
}

interface CheckpointerThread {
  readonly worker: Worker
  readonly ended: Promise<void>
}

const IDLE_BEFORE_ENDING_MS = 60_000
const HEAP_MB = 128

export function createWalCheckpointer(path: string, onFailure: (error: Error) => void): WalCheckpointer {
  let thread: CheckpointerThread | null = null
  let isBusy = false
  let isClosed = false
  let idle: NodeJS.Timeout | null = null
  const ending = new Set<Promise<void>>()

  function start(): CheckpointerThread {
    const workerData: CheckpointerData = { path }
    const worker = new Worker(new URL('./checkpointer-thread.ts', import.meta.url), {
      workerData,
      name: 'checkpointer',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    worker.on('message', () => {
      isBusy = false
      if (!isClosed) idle = setTimeout(end, IDLE_BEFORE_ENDING_MS)
    })
    // `isBusy` stays true: no further checkpoint is requested, and the writer goes on without help.
    worker.on('error', onFailure)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    worker.on('exit', () => resolve())
    return { worker, ended }
  }

  function stopIdleTimer(): void {
    if (idle !== null) clearTimeout(idle)
    idle = null
  }

  function end(): void {
    stopIdleTimer()
    if (thread === null) return
    const { worker, ended } = thread
    thread = null
    worker.postMessage('close')
    ending.add(ended)
    void ended.then(() => ending.delete(ended))
  }

  return {
    request() {
      if (isBusy || isClosed) return
      isBusy = true
      stopIdleTimer()
      thread ??= start()
      thread.worker.postMessage('checkpoint')
    },
    async close() {
      isClosed = true
      end()
      await Promise.all(ending)
    },
  }
}
