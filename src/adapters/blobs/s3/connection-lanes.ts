/**
 * Who may use the connections to a bucket. A download holds its connection for as long as its reader takes, and the reader may
 * itself be writing to the bucket. So downloads and all other requests have separate lanes: other requests depend only on the storage
 * and always end, and then downloads that wait for them can end too. Every wait in a lane is bounded.
 */
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { S3Error } from './s3-error.ts'

export interface LaneOptions {
  readonly reads?: number
  readonly writes?: number
  readonly readWaitMs?: number
  readonly writeWaitMs?: number
}

type GiveBack = () => void

interface Lane {
  readonly connections: number
  /** Resolves to the function that gives the connection back. Throws S3Error `busy`, or `aborted`. */
  take(signal?: AbortSignal): Promise<GiveBack>
}

const READS = 128
const WRITES = 64
// Readers may be slow clients: beyond this number a request is refused and should be repeated later.
const READ_WAIT_MS = 15_000
// Everything in front of it is on its way; over a narrow line a few dozen parts take a while.
const WRITE_WAIT_MS = 60_000

export function createLanes(options: LaneOptions = {}): { readonly reads: Lane; readonly writes: Lane } {
  const { reads = READS, writes = WRITES, readWaitMs = READ_WAIT_MS, writeWaitMs = WRITE_WAIT_MS } = options
  return { reads: createLane(reads, readWaitMs), writes: createLane(writes, writeWaitMs) }
}

function createLane(connections: number, waitMs: number): Lane {
  const room = createSemaphore(connections)

  async function waitInLine(signal: AbortSignal | undefined): Promise<GiveBack> {
    const ending = new AbortController()
    const end = () => ending.abort(null)
    const timer = setTimeout(end, waitMs)
    signal?.addEventListener('abort', end, { once: true })
    try {
      return await room.take(ending.signal)
    } catch {
      throw signal?.aborted ? aborted() : busy()
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    }
  }

  return {
    connections,
    async take(signal) {
      if (signal?.aborted) throw aborted()
      return room.free > 0 ? room.take() : waitInLine(signal)
    },
  }
}

function busy(): S3Error {
  return new S3Error('every connection to the storage is in use', { status: null, code: 'busy' })
}

function aborted(): S3Error {
  return new S3Error('the call had ended', { status: null, code: 'aborted' })
}
