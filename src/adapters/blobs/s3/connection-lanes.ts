/**
 * Who may use the connections to a bucket. Whoever reads an object holds its connection for as long as the reader takes, and the
 * reader may itself be writing to the bucket. So reading and everything else go by lanes of their own: what is sent needs nobody
 * but the storage and always comes to an end, and then so do those that read in order to send. No wait in a lane is without end.
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
// Readers may be slow clients: whoever finds so many of them does better to come again.
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
