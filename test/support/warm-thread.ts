/** Runs scripts of store threads one after the other, each as if the thread were its own, and says when one has ended (warm-threads.ts). */
import { syncBuiltinESMExports } from 'node:module'
import threads, { type MessagePort } from 'node:worker_threads'

/** What a script finds as its own. */
export interface Assignment {
  readonly script: string
  readonly workerData: unknown
  readonly parentPort: MessagePort
}

export const ENDED = 'ended'

const starter = threads.parentPort
let count = 0

starter?.on('message', ({ script, workerData, parentPort }: Assignment) => {
  Object.assign(threads, { workerData, parentPort })
  syncBuiltinESMExports()
  parentPort.once('close', () => starter.postMessage(ENDED))
  count += 1
  // A name of its own each time: a module is run once for each name. What it imports is loaded once.
  void import(`${script}?${count}`)
})
