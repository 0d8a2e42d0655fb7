/** Node classes that load in the engine thread, and end every compute thread that loads them. Each load is written down. */
import { appendFileSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

// Only compute threads are given a line to the memory of the engine.
if (workerData !== null && 'memory' in workerData) {
  const loads = new URL(import.meta.url).searchParams.get('loads')
  if (loads !== null) appendFileSync(loads, `${Date.now()}\n`)
  throw new Error('these nodes never load')
}

export const nodes = []
