/**
 * Collections of memory at moments of our own choosing, where we know more than the runtime does: while a large transfer
 * passes through, and while nothing happens at all.
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

// Half of what makes the runtime mark the heap.
const PASSED_BYTES = 32 * 1024 * 1024

let passedBytes = 0

/**
 * To be told of every chunk of a large transfer. The runtime counts such buffers against a limit of their own and, when it is
 * reached, marks the whole heap; a service with a heap of some size then spends more on that than on the transfer. A minor
 * collection frees the same buffers within a fraction of a millisecond.
 */
export function passBuffer(bytes: number): void {
  passedBytes += bytes
  if (passedBytes < PASSED_BYTES) return
  passedBytes = 0
  collectGarbage('minor')
}
