/**
 * Garbage collections at chosen moments, where the program knows more than the runtime: during a large transfer, and while the
 * thread is idle.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type CollectionType = 'minor' | 'major'
type Collect = (options: { readonly type: CollectionType }) => void

let collect: Collect | null = null

/** Collects this thread's heap, and returns when that is done. */
export function collectGarbage(type: CollectionType): void {
  collect ??= openCollect()
  collect({ type })
}

function openCollect(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}

// Half of the amount at which the runtime would mark the heap.
const PASSED_BYTES = 32 * 1024 * 1024

let passedBytes = 0

/**
 * To be called with the size of every chunk of a large transfer. The runtime counts such buffers against a separate limit and
 * marks the whole heap when it is reached; with a large heap that costs more than the transfer itself. A minor collection frees
 * the same buffers within a fraction of a millisecond.
 */
export function passBuffer(bytes: number): void {
  passedBytes += bytes
  if (passedBytes < PASSED_BYTES) return
  passedBytes = 0
  collectGarbage('minor')
}
