/**
 * Frees the buffers of large transfers soon after they were passed on. The runtime counts such buffers against a limit of their
 * own and, when it is reached, marks the whole heap; a service with a heap of some size then spends more on that than on the
 * transfer. A minor collection frees the same buffers within a fraction of a millisecond.
 */

import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { collectGarbage } from '../../../lib/threads/garbage.ts'

// A quarter of what makes the runtime mark the heap: it is also what a transfer may leave unfreed.
const COLLECT_EVERY_BYTES = 16 * 1024 * 1024

/** What it returns is to be told of every chunk that was sent or received. */
export function createMinorGc(collect: () => void = collectMinor): (bytes: number) => void {
  let sinceLastBytes = 0
  return function onTransferred(bytes) {
    sinceLastBytes += bytes
    if (sinceLastBytes < COLLECT_EVERY_BYTES) return
    sinceLastBytes = 0
    collect()
  }
}

function collectMinor(): void {
  collectGarbage('minor')
}

// What is done once a start is over. Node then keeps the code that it compiled: by itself it does so when the process ends, and one that is killed
// would leave the next start to compile everything anew. From then on new objects are young: during a start nearly everything stays, and the runtime
// concludes that what the same lines make later will stay as well. Placed among the old objects, short-lived ones keep the rest of their request
// alive until a full collection (decision 0073).

// By then what a start runs is compiled.
const AFTER_MS = 250

export function awaitEndOfStart(): Disposable {
  const timer = setTimeout(() => {
    // In this order: code that was kept under other flags is compiled again.
    flushCompileCache()
    setFlagsFromString('--no-allocation-site-pretenuring')
  }, AFTER_MS)
  timer.unref()
  return { [Symbol.dispose]: () => clearTimeout(timer) }
}
