/** The life of a store thread: it opens when told to and says whether it could, answers batches one after the other, closes when told to. */
import { parentPort } from 'node:worker_threads'
import { createIdleCollection, IDLE_CHECK_MS } from '../../../../../lib/threads/garbage.ts'
import { StoreOpenError } from '../../../../domain/store.ts'
import { toOpenError } from '../database/sqlite-error.ts'
import type { RunBatch } from './run-batch.ts'
import { type Batch, CLOSE, type Greeting, type OPEN, REPAIRED } from './store-thread-protocol.ts'

export interface ThreadBody {
  readonly run: RunBatch
  /** Called after each answer; true when damage was repaired for it. */
  wasRepaired?(): boolean
  /** Called while nobody asks for anything: frees the caches. */
  rest(): void
  close(): void
}

function greet(
  path: string,
  open: () => ThreadBody,
): { readonly greeting: Greeting; readonly body: ThreadBody | null } {
  try {
    return { greeting: { opened: true }, body: open() }
  } catch (cause) {
    const error = toOpenError(cause, path)
    const reason = error instanceof StoreOpenError ? error.reason : null
    const message = error instanceof Error ? error.message : String(error)
    return { greeting: { opened: false, reason, message }, body: null }
  }
}

/** Whatever `run` throws ends the thread, which the main thread reports as fatal. */
export function serveBatches(path: string, open: () => ThreadBody): void {
  const port = parentPort
  if (port === null) throw new Error('A store thread was started outside a worker.')
  port.once('message', (first: typeof OPEN | typeof CLOSE) => {
    if (first === CLOSE) return port.close()
    const { greeting, body } = greet(path, open)
    port.postMessage(greeting)
    if (body === null) return port.close()
    const collectIdle = createIdleCollection()
    const resting = setInterval(() => {
      if (collectIdle()) body.rest()
    }, IDLE_CHECK_MS)
    port.on('message', (batch: Batch | typeof CLOSE) => {
      if (batch !== CLOSE) {
        port.postMessage(body.run(batch))
        if (body.wasRepaired?.()) port.postMessage(REPAIRED)
        return
      }
      clearInterval(resting)
      body.close()
      port.close()
    })
  })
}
