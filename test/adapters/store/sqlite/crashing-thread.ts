/** A store thread that greets and then dies of its first batch. */
import { parentPort } from 'node:worker_threads'

parentPort?.postMessage({ opened: true })
parentPort?.on('message', () => {
  throw new Error('the thread broke')
})
