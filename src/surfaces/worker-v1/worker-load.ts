/**
 * How much the processes of one key may ask for at once. A worker with a slot for each of many engines stays far below it; whoever
 * stole a key cannot keep a node busy with it.
 */
import { ServiceError } from '../../domain/errors.ts'

export interface WorkerLoad {
  /** Throws overloaded. Returns the end of the request. */
  begin(keyId: string): () => void
}

// A parked claim per pool, renewals, and a few uploads and commits for each of hundreds of slots.
const MAX_AT_ONCE = 512
const PER_SECOND = 200
const BURST = 2000

interface KeyLoad {
  underWay: number
  tokens: number
  atMs: number
}

export function createWorkerLoad(nowMs: () => number): WorkerLoad {
  const loads = new Map<string, KeyLoad>()

  function refused(message: string): ServiceError {
    // Not `rate_limited`: a worker waits for this to pass, and would not for a limit of an account.
    return new ServiceError('overloaded', message, { retryAfterSeconds: 1 })
  }

  return {
    begin(keyId) {
      const now = nowMs()
      const load = loads.get(keyId) ?? { underWay: 0, tokens: BURST, atMs: now }
      loads.set(keyId, load)
      load.tokens = Math.min(BURST, load.tokens + ((now - load.atMs) / 1000) * PER_SECOND)
      load.atMs = now
      if (load.underWay >= MAX_AT_ONCE) throw refused('too many requests of this key are under way')
      if (load.tokens < 1) throw refused('this key asks too often')
      load.tokens--
      load.underWay++
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        load.underWay--
      }
    },
  }
}
