/**
 * Bytes through a service that was joined. Inputs are read on from where a connection broke. Outputs are spooled and hashed, and
 * sent only if the service wants them: small ones at once, large ones in pieces, each of which is sent until it has arrived.
 */

import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Blake3 } from '../../../lib/files/blake3.ts'
import { createBackoff, sleep } from '../../../lib/waiting/sleep.ts'
import { isStoreAway, outlastOutage, type Refusal, ServiceError, storeUnavailable } from '../../domain/errors.ts'
import type { Lease } from '../../domain/jobs/job-store.ts'
import type { RunInputs, StoreOutput } from '../../domain/jobs/run/run-deps.ts'
import type { GatewayCall, GatewayClient } from './gateway-client.ts'
import type { HeldJobs } from './held-jobs.ts'

interface RemoteFilesDeps {
  readonly client: Pick<GatewayClient, 'call' | 'open'>
  readonly held: HeldJobs
  readonly blake3: Blake3
  /** Where large outputs lie until they are sent. */
  readonly directory: string
  readonly maxPieceBytes: number
}

interface RemoteFiles {
  readonly storeOutput: StoreOutput
  readonly blobs: RunInputs
}

interface Receipt {
  readonly hash: string
  readonly size_bytes: number
  readonly receipt: string
}

type OfferAnswer =
  | { readonly state: 'stored'; readonly receipt: string }
  | { readonly state: 'wanted' }
  | { readonly state: 'failed'; readonly error: { readonly type: string; readonly message: string } }

interface Piece {
  readonly bytes: Uint8Array
  readonly hash: string
  readonly signal: AbortSignal
}

interface Offer {
  readonly whole: Spooled
  readonly pieces?: readonly Receipt[]
  readonly signal: AbortSignal
}

const PIECE_BYTES = 8 * 1024 * 1024
// Few enough that joining them is one request, whatever the size.
const MAX_PIECES = 2000
const TRANSFER_MS = 300_000
// Blanks come while it lasts, and their absence ends it earlier.
const JOIN_MS = 3_600_000
const READ_TRIES = 10

export function createRemoteFiles(deps: RemoteFilesDeps): RemoteFiles {
  const { client, held, blake3, directory, maxPieceBytes } = deps

  async function offer(lease: Lease, { whole, pieces, signal }: Offer): Promise<string | null> {
    const answer = await client.call<OfferAnswer>({
      method: 'POST',
      path: `/jobs/${lease.jobId}/blobs`,
      json: { lease_id: lease.leaseId, hash: whole.hash, size_bytes: whole.sizeBytes, ...(pieces && { pieces }) },
      withinMs: pieces === undefined ? TRANSFER_MS : JOIN_MS,
      signal,
    })
    if (answer?.state === 'failed') {
      const { type, message } = answer.error
      throw type === 'store_unavailable'
        ? storeUnavailable(new Error(message))
        : new ServiceError(type as Refusal, message)
    }
    return answer?.state === 'stored' ? answer.receipt : null
  }

  async function put({ jobId, leaseId }: Lease, { bytes, hash, signal }: Piece): Promise<Receipt> {
    const path = `/jobs/${jobId}/blobs/${hash}?lease_id=${leaseId}`
    const stored = await client.call<Receipt>({ method: 'PUT', path, bytes, withinMs: TRANSFER_MS, signal })
    if (stored === null) throw storeUnavailable(new Error('an output was not acknowledged'))
    return stored
  }

  async function send(lease: Lease, whole: Spooled, signal: AbortSignal): Promise<string> {
    const { sizeBytes, hash } = whole
    const pieceBytes = Math.min(maxPieceBytes, Math.max(PIECE_BYTES, Math.ceil(sizeBytes / MAX_PIECES)))
    if (sizeBytes <= pieceBytes) {
      const bytes = await whole.read(0, sizeBytes)
      return (await outlastOutage(() => put(lease, { bytes, hash, signal }), signal)).receipt
    }
    const pieces: Receipt[] = []
    for (let start = 0; start < sizeBytes; start += pieceBytes) {
      const bytes = await whole.read(start, pieceBytes)
      const piece = { bytes, hash: blake3.hash(bytes), signal }
      pieces.push(await outlastOutage(() => put(lease, piece), signal))
    }
    const receipt = await outlastOutage(() => offer(lease, { whole, pieces, signal }), signal)
    if (receipt === null) throw new ServiceError('hash_mismatch', 'the pieces of an output could not be joined')
    return receipt
  }

  return {
    async storeOutput(source, { lease, maxBytes, signal = new AbortController().signal }) {
      await using whole = await spool(source, { directory, blake3, maxBytes, memoryBytes: PIECE_BYTES, signal })
      const receipt =
        (await outlastOutage(() => offer(lease, { whole, signal }), signal)) ?? (await send(lease, whole, signal))
      held.get(lease.leaseId)?.receipts.set(whole.hash, receipt)
      return { hash: whole.hash, sizeBytes: whole.sizeBytes }
    },
    blobs: {
      open: async (hash, _range, lease) => Readable.from(readInput(deps, { hash, lease })),
      localPath: () => null,
    },
  }
}

interface Input {
  readonly hash: string
  readonly lease: Lease
}

/** Bytes of the service, read on from where a connection broke. `sizeBytes`: null: as the service says. Rejects when there are fewer. */
export async function* readOn(
  client: RemoteFilesDeps['client'],
  { path, isLink = false }: Pick<GatewayCall, 'path' | 'isLink'>,
  sizeBytes: number | null,
): AsyncGenerator<Uint8Array> {
  const backoff = createBackoff({ firstMs: 250, maxMs: 4000 })
  let total = sizeBytes
  let read = 0
  for (let tries = 1; total === null || read < total; ) {
    try {
      const range = read === 0 ? {} : { range: `bytes=${read}-` }
      const { headers, body } = await client.open({ method: 'GET', path, isLink, ...range, withinMs: TRANSFER_MS })
      total ??= Number(headers['content-length'])
      for await (const chunk of asOutages(body)) {
        read += chunk.byteLength
        tries = 1
        yield chunk
      }
      if (read < total) throw storeUnavailable(new Error('a file ended early'))
    } catch (error) {
      if (!isStoreAway(error) || tries >= READ_TRIES) throw error
      tries++
      await sleep(backoff.nextMs())
    }
  }
}

/** A connection that breaks is an outage. */
async function* asOutages(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw storeUnavailable(error)
  }
}

async function* readInput(
  { client, held, blake3 }: RemoteFilesDeps,
  { hash, lease }: Input,
): AsyncGenerator<Uint8Array> {
  const hasher = blake3.createHasher()
  const path = `/jobs/${lease.jobId}/inputs/${hash}?lease_id=${lease.leaseId}`
  for await (const chunk of readOn(client, { path }, held.mustFindInput(hash))) {
    hasher.update(chunk)
    yield chunk
  }
  if (hasher.digest() !== hash)
    throw new ServiceError('output_unavailable', 'an input arrived with other bytes than it has')
}

/**
 * Bytes that an engine made, kept until the service has them: small ones in memory, others in a file that is removed at the end.
 * They are hashed on the way, so that nothing is sent that is there already, and a broken connection does not ask the engine again.
 */
interface Spooled extends AsyncDisposable {
  readonly hash: string
  readonly sizeBytes: number
  read(start: number, length: number): Promise<Uint8Array>
}

interface SpoolOptions {
  readonly directory: string
  readonly blake3: Blake3
  readonly maxBytes: number
  readonly memoryBytes: number
  readonly signal?: AbortSignal
}

const OWNER_ONLY = 0o600

async function spool(source: AsyncIterable<Uint8Array>, options: SpoolOptions): Promise<Spooled> {
  const { blake3, maxBytes, memoryBytes, signal } = options
  const hasher = blake3.createHasher()
  const path = join(options.directory, `output-${randomUUID()}`)
  let chunks: Uint8Array[] = []
  let file: FileHandle | null = null
  let sizeBytes = 0
  const remove = async () => {
    await file?.close()
    if (file !== null) await rm(path, { force: true })
  }
  try {
    for await (const chunk of source) {
      signal?.throwIfAborted()
      sizeBytes += chunk.byteLength
      if (sizeBytes > maxBytes) throw new ServiceError('payload_too_large', `more than ${maxBytes} bytes`)
      hasher.update(chunk)
      if (file === null && sizeBytes > memoryBytes) {
        file = await open(path, 'wx+', OWNER_ONLY)
        for (const held of chunks) await file.write(held)
        chunks = []
      }
      // A copy: the source may use its buffer again.
      if (file === null) chunks.push(Uint8Array.from(chunk))
      else await file.write(chunk)
    }
  } catch (error) {
    await remove()
    throw toRoomError(error)
  }
  const whole = file === null ? Buffer.concat(chunks) : null
  return {
    hash: hasher.digest(),
    sizeBytes,
    async read(start, length) {
      if (whole !== null) return whole.subarray(start, start + length)
      const bytes = Buffer.alloc(Math.min(length, sizeBytes - start))
      let filled = 0
      while (filled < bytes.length) {
        const { bytesRead } = await file!.read(bytes, filled, bytes.length - filled, start + filled)
        if (bytesRead === 0) throw new Error('a spooled file is shorter than it was')
        filled += bytesRead
      }
      return bytes
    },
    [Symbol.asyncDispose]: remove,
  }
}

/** The disk of this machine has no room: that is not the job's fault. */
function toRoomError(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error
  return new ServiceError('storage_full', 'the disk of this worker is full', { cause: error })
}
