/**
 * The one thread that reads, on a connection that cannot write. Once it has opened, it never waits for the writer, nor the writer
 * for it.
 */
import { workerData } from 'node:worker_threads'
import { openReader } from '../database/sqlite-connections.ts'
import { prepareReadOperations } from '../operations/read-operations.ts'
import { createReadBatch } from './run-batch.ts'
import { serveBatches } from './serve-batches.ts'

export interface ReaderData {
  readonly path: string
}

const { path } = workerData as ReaderData

serveBatches(path, () => {
  const database = openReader(path)
  return {
    run: createReadBatch(database, prepareReadOperations(database)),
    rest: () => database.exec('PRAGMA shrink_memory'),
    close: () => database.close(),
  }
})
