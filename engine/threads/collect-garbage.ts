/**
 * A garbage collection on request. Shared memory does not weigh on the collector's own decisions, so a thread that has
 * dropped a lot of it has to ask.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function createCollectGarbage(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
