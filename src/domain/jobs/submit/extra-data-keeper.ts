/**
 * Keeps the credentials in the `extra_data` of jobs until they end. They live in memory only, by job id, bounded in count and
 * bytes; with a sealer they are kept encrypted in the store instead, so that an attempt after a restart has them too. They are
 * forgotten at every terminal state, and at the latest with the job's retention. They never reach a log or an error.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import type { Sealer } from '../../../../lib/sealer.ts'
import { ServiceError } from '../../errors.ts'

export type ExtraData = Readonly<Record<string, unknown>>

export interface ExtraDataKeeper {
  /**
   * Call it before the job row is written. Returns what the store is to keep, or null. Throws `queue_full` when there is no room.
   * `text`: the data as JSON, where the caller has it already.
   */
  hold(jobId: string, data: ExtraData, until: Date, text?: string): Uint8Array | null
  /** For a claimed job; null when the data was lost. */
  take(jobId: string, sealed: Uint8Array | null): ExtraData | null
  forget(jobId: string): void
  /** Forgets data of jobs past their retention; returns how many. */
  sweep(now: Date): number
  count(): number
}

interface ExtraDataOptions {
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

  return {
    hold(jobId, data, until, text = stringifyLosslessJson(data as JsonObject)) {
      if (sealer !== null) return sealer.seal(Buffer.from(text), jobId)
      const bytes = Buffer.byteLength(text)
      if (held.size >= maxCount || heldBytes + bytes > maxBytes) {
        throw new ServiceError('queue_full', 'too many waiting jobs carry credentials in extra_data; try again later', {
          retryAfterSeconds: NO_ROOM_RETRY_SECONDS,
        })
      }
      forget(jobId)
      held.set(jobId, { data, bytes, until })
      heldBytes += bytes
      return null
    },
    take(jobId, sealed) {
      const inMemory = held.get(jobId)
      if (inMemory !== undefined) return inMemory.data
      return sealed === null || sealer === null ? null : readSealed(sealer, sealed, jobId)
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

/** What a run is given: the notes that were stored with its job, and the credentials. */
export function joinExtraData(notes: JsonValue, credentials: ExtraData | null): ExtraData | null {
  if (notes === null) return credentials
  // Credentials come last: data that an older version sealed contains the notes, too.
  return { ...(notes as JsonObject), ...credentials }
}

function readSealed(sealer: Sealer, sealed: Uint8Array, jobId: string): ExtraData | null {
  const plain = sealer.open(sealed, jobId)
  if (plain === null) return null
  const data = parseLosslessJson(Buffer.from(plain).toString('utf8'))
  return isJsonObject(data) ? data : null
}
