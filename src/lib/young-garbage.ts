/**
 * Frees the buffers of a large transfer while they are young. The runtime counts such buffers against a limit of their own
 * and, when it is reached, marks the whole heap; a service with a heap of some size then spends more on that than on the
 * transfer. A minor collection frees the same buffers within a fraction of a millisecond.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { readonly type: 'minor' }) => void

// Half of what makes the runtime mark the heap.
const EVERY_BYTES = 32 * 1024 * 1024

let passedBytes = 0
let collect: Collect | null = null

/** To be told of every chunk that passes through. */
export function passBuffer(bytes: number): void {
  passedBytes += bytes
  if (passedBytes < EVERY_BYTES) return
  passedBytes = 0
  collect ??= openCollect()
  collect({ type: 'minor' })
}

function openCollect(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}
