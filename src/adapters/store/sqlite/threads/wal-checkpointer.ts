/**
 * The main thread's hand on the checkpointer. It is started when the log is long and ended when that has not happened for a
 * while: a service with little to do has none. It is a help and no more: when it is late or gone, the writer moves the log
 * itself.
 */
import { Worker } from 'node:worker_threads'
import type { CheckpointerData } from './checkpointer-thread.ts'

export interface LogMover {
  /** The log is long. Does nothing while it is being moved. */
  ask(): void
  /** Twice is harmless. */
  close(): Promise<void>
}

interface Mover {
  readonly worker: Worker
  readonly ended: Promise<void>
}

const IDLE_BEFORE_ENDING_MS = 60_000
const HEAP_MB = 128

export function createLogMover(path: string, onTrouble: (error: Error) => void): LogMover {
  let mover: Mover | null = null
  let isBusy = false
  let isClosed = false
  let idle: NodeJS.Timeout | null = null
  const ending = new Set<Promise<void>>()

  function start(): Mover {
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
    // It stays busy for ever then, and the writer goes on without it.
    worker.on('error', onTrouble)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    worker.on('exit', () => resolve())
    return { worker, ended }
  }

  function stopWaiting(): void {
    if (idle !== null) clearTimeout(idle)
    idle = null
  }

  function end(): void {
    stopWaiting()
    if (mover === null) return
    const { worker, ended } = mover
    mover = null
    worker.postMessage('close')
    ending.add(ended)
    void ended.then(() => ending.delete(ended))
  }

  return {
    ask() {
      if (isBusy || isClosed) return
      isBusy = true
      stopWaiting()
      mover ??= start()
      mover.worker.postMessage('move')
    },
    async close() {
      isClosed = true
      end()
      await Promise.all(ending)
    },
  }
}
