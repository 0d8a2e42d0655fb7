/** Node classes that load in the engine thread, and end the compute threads that load them: all, or the first few. Each load is written down. */
import { appendFileSync, readFileSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

// Only compute threads are given a line to the memory of the engine.
if (workerData !== null && 'memory' in workerData) {
  const { searchParams } = new URL(import.meta.url)
  const [loads, dying] = [searchParams.get('loads'), searchParams.get('dying')]
  if (loads !== null) appendFileSync(loads, `${Date.now()}\n`)
  const count = loads === null ? 1 : readFileSync(loads, 'utf8').trim().split('\n').length
  if (dying === null || count <= Number(dying)) throw new Error('these nodes never load')
}

export const nodes = []
