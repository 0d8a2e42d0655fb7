/** A writer whose commits are done and not yet on disk: every answer waits for the ticket that its input names. */
import { parentPort } from 'node:worker_threads'
import type { Answer, Batch, Greeting } from '../../../../src/adapters/store/sqlite/threads/protocol.ts'

const greeting: Greeting = { opened: true }
parentPort?.postMessage(greeting)
parentPort?.on('message', (batch: Batch | null) => {
  if (batch === null) return parentPort?.close()
  const [, inputs] = batch
  const answer: Answer = [inputs, null, inputs.at(-1) as number | null]
  parentPort?.postMessage(answer)
})
