/** Copies the WAL into the database whenever it is asked to, while the writer writes on. */
import { parentPort, workerData } from 'node:worker_threads'
import { openCheckpointer } from '../database/sqlite-connections.ts'

export interface CheckpointerData {
  readonly path: string
}

const { path } = workerData as CheckpointerData
const database = openCheckpointer(path)
const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort?.on('message', (message: 'checkpoint' | 'close') => {
  if (message === 'close') {
    database.close()
    parentPort?.close()
    return
  }
  try {
    checkpoint.get()
  } catch {
    // The WAL keeps everything; the next checkpoint tries again.
  }
  parentPort?.postMessage('done')
})
