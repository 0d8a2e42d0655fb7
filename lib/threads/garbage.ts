/**
 * Garbage collections at moments of the caller's choosing, for callers that know more than the runtime does: that a thread is
 * at rest, that the buffers of a transfer have just been dropped, or that shared memory has, which does not weigh on the
 * runtime's own decisions.
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
