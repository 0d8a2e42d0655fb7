/**
 * What is done once a start is over. Node then keeps the code that it compiled: by itself it does so when the process ends, and one that is killed
 * would leave the next start to compile everything anew. From then on new objects are young: during a start nearly everything stays, and the runtime
 * concludes that what the same lines make later will stay as well. Placed among the old objects, short-lived ones keep the rest of their request
 * alive until a full collection (decision 0073).
 */
import { flushCompileCache } from 'node:module'
import { setFlagsFromString } from 'node:v8'

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
