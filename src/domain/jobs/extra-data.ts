/**
 * Keeps the `extra_data` of jobs (credentials, PNG info) between submit and run. It lives in memory only, by job id, bounded
 * in count and bytes; with a sealer it waits sealed in the store instead and comes into memory when the job is claimed.
 * It is forgotten at every terminal state, and at the latest with the job's retention. It never reaches a log or an error.
 */
import { isJsonObject, type JsonObject, parseLosslessJson, stringifyLosslessJson } from '../../lib/lossless-json.ts'
import type { Sealer } from '../../lib/sealer.ts'
import { ServiceError } from '../errors.ts'

export type ExtraData = Readonly<Record<string, unknown>>

export interface ExtraDataKeeper {
  /**
   * Before the job row is written. Returns what the store is to keep, or null. Throws `queue_full` when there is no room.
   * `text`: the data as JSON, where it is written already.
   */
  hold(jobId: string, data: ExtraData, until: Date, text?: string): Uint8Array | null
  /** For a claimed job; null when the data is nowhere. What was sealed stays in memory for a later attempt. */
  take(jobId: string, sealed: Uint8Array | null, until: Date): ExtraData | null
  forget(jobId: string): void
  /** Forgets what outlived its job, whoever ended it; returns how many. */
  sweep(now: Date): number
  count(): number
}

export interface ExtraDataOptions {
  readonly sealer: Sealer | null
  readonly maxCount?: number
  readonly maxBytes?: number
}

interface Held {
  readonly data: ExtraData
  readonly bytes: number
  readonly until: Date
}

const DEFAULT_MAX_COUNT = 10_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024
const NO_ROOM_RETRY_SECONDS = 10

export function createExtraDataKeeper(options: ExtraDataOptions): ExtraDataKeeper {
  const { sealer, maxCount = DEFAULT_MAX_COUNT, maxBytes = DEFAULT_MAX_BYTES } = options
  const held = new Map<string, Held>()
  let heldBytes = 0

  function forget(jobId: string): void {
    const entry = held.get(jobId)
    if (entry === undefined) return
    held.delete(jobId)
    heldBytes -= entry.bytes
  }

  function keep(jobId: string, entry: Held): void {
    forget(jobId)
    held.set(jobId, entry)
    heldBytes += entry.bytes
  }

  return {
    hold(jobId, data, until, text = stringifyLosslessJson(data as JsonObject)) {
      if (sealer !== null) return sealer.seal(Buffer.from(text), jobId)
      const bytes = Buffer.byteLength(text)
      if (held.size >= maxCount || heldBytes + bytes > maxBytes) {
        throw new ServiceError('queue_full', 'too many waiting jobs carry extra_data; try again later', {
          retryAfterSeconds: NO_ROOM_RETRY_SECONDS,
        })
      }
      keep(jobId, { data, bytes, until })
      return null
    },
    take(jobId, sealed, until) {
      const inMemory = held.get(jobId)
      if (inMemory !== undefined) return inMemory.data
      const data = sealed === null || sealer === null ? null : readSealed(sealer, sealed, jobId)
      // The number of running jobs bounds what comes in this way.
      if (data !== null) keep(jobId, { data, bytes: sealed?.byteLength ?? 0, until })
      return data
    },
    forget,
    sweep(now) {
      const over = [...held].filter(([, entry]) => entry.until <= now)
      for (const [jobId] of over) forget(jobId)
      return over.length
    },
    count: () => held.size,
  }
}

function readSealed(sealer: Sealer, sealed: Uint8Array, jobId: string): ExtraData | null {
  const plain = sealer.open(sealed, jobId)
  if (plain === null) return null
  const data = parseLosslessJson(Buffer.from(plain).toString('utf8'))
  return isJsonObject(data) ? data : null
}
