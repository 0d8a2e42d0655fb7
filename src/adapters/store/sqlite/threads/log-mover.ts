/**
 * The main thread's hand on the checkpointer. It is started when the log is long for the first time: a service with little to
 * do never has one. It is a help and no more: when it is late or gone, the writer moves the log itself.
 */
import { Worker } from 'node:worker_threads'
import type { CheckpointerData } from './checkpointer.ts'

export interface LogMover {
  /** The log is long. Does nothing while it is being moved. */
  ask(): void
  /** Twice is harmless. */
  close(): Promise<void>
}

const HEAP_MB = 128

export function createLogMover(path: string, onTrouble: (error: Error) => void): LogMover {
  let worker: Worker | null = null
  let isBusy = false
  let isClosed = false
  const ended = Promise.withResolvers<void>()

  function start(): Worker {
    const workerData: CheckpointerData = { path }
    const started = new Worker(new URL('./checkpointer.ts', import.meta.url), {
      workerData,
      name: 'checkpointer',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    started.on('message', () => {
      isBusy = false
    })
    // It stays busy for ever then, and the writer goes on without it.
    started.on('error', onTrouble)
    started.on('exit', () => ended.resolve())
    return started
  }

  return {
    ask() {
      if (isBusy || isClosed) return
      isBusy = true
      worker ??= start()
      worker.postMessage('move')
    },
    async close() {
      isClosed = true
      if (worker === null) return
      worker.postMessage('close')
      await ended.promise
    },
  }
}
