/** A store thread that opens and then dies of its first batch. */
import { parentPort } from 'node:worker_threads'

parentPort?.once('message', () => {
  parentPort?.postMessage({ opened: true })
  parentPort?.on('message', () => {
    throw new Error('the thread broke')
  })
})
