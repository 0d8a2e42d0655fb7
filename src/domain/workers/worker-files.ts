/**
 * The bytes that joined workers read and bring. A worker reads the inputs of jobs that it holds and nothing else. What it brings
 * is stored by its hash: in one piece, or in several that are joined at the end, so that a broken connection costs one piece and
 * every process can take the next one. Bytes that the job's account has already need not be brought at all.
 */
import type { Readable } from 'node:stream'
import type { Clock } from '../../../lib/clock.ts'
import type { AssetStore } from '../assets/asset-store.ts'
import {
  type BlobStore,
  type ByteRange,
  HELD_MS,
  type PendingBlob,
  settleBlob,
  toLaterClock,
} from '../assets/blob-store.ts'
import { invalidField, ServiceError } from '../errors.ts'
import type { Lease } from '../jobs/job-store.ts'
import type { OutputCheck } from '../jobs/outputs/check-outputs.ts'
import { type HeldClaims, toLease } from './held-claims.ts'
import type { OutputReceipts, StoredPiece } from './output-receipts.ts'
import type { WorkerIdentity } from './worker-keys.ts'

interface InputContent {
  readonly sizeBytes: number
  open(range?: ByteRange): Promise<Readable>
}

export interface ProvenPiece extends StoredPiece {
  readonly receipt: string
}

export interface WorkerFiles {
  /** Throws not_found for anything that is no input of the job that the lease holds. */
  openInput(worker: WorkerIdentity, lease: Lease, hash: string): Promise<InputContent>
  /** The receipt, when the account of the job has these bytes already; null: they must be brought. */
  offer(worker: WorkerIdentity, lease: Lease, piece: StoredPiece): Promise<string | null>
  /** Throws hash_mismatch, payload_too_large. */
  store(worker: WorkerIdentity, lease: Lease, upload: Upload): Promise<ProvenPiece>
  /** Makes one of pieces that were stored under the same lease. Throws hash_mismatch, invalid_field, payload_too_large. */
  join(worker: WorkerIdentity, lease: Lease, parts: JoinedPieces): Promise<ProvenPiece>
}

interface JoinedPieces {
  readonly whole: StoredPiece
  readonly pieces: readonly ProvenPiece[]
  readonly signal: AbortSignal
}

interface Upload {
  readonly hash: string
  readonly source: AsyncIterable<Uint8Array>
  readonly signal: AbortSignal
}

interface Expected {
  readonly hash: string
  readonly clock: Clock
}

export interface WorkerFilesDeps {
  readonly blobs: Pick<BlobStore, 'open' | 'receive' | 'stat'>
  readonly assets: Pick<AssetStore, 'announceBlob'>
  readonly hasBlob: (accountId: string, hash: string) => Promise<boolean>
  readonly held: HeldClaims
  readonly receipts: OutputReceipts
  readonly clock: Clock
  storageLeft(accountId: string): Promise<number>
  /** null: outputs get their records as they come. */
  readonly outputCheck: Pick<OutputCheck, 'covers'> | null
}

/** The largest piece that is taken at once. */
export const MAX_PIECE_BYTES = 64 * 1024 * 1024
// What is as large may be one of many pieces, and they come over a narrow line one by one: all must be there when the last one is.
// Smaller ones are whole, or the last.
const MIN_PIECE_BYTES = 8 * 1024 * 1024
const PIECE_LIFE_MS = 6 * 3_600_000

export function createWorkerFiles(deps: WorkerFilesDeps): WorkerFiles {
  const { blobs, held, receipts } = deps

  const pieceClock = toLaterClock(deps.clock, PIECE_LIFE_MS)
  const heldClock = toLaterClock(deps.clock, HELD_MS)

  async function keep(leaseId: string, pending: PendingBlob, { hash, clock }: Expected): Promise<ProvenPiece> {
    if (pending.hash !== hash) {
      await pending.discard()
      throw new ServiceError('hash_mismatch', 'the bytes do not have the hash that was said; send them again')
    }
    await settleBlob(pending, { assets: deps.assets, clock })
    const piece = { hash, sizeBytes: pending.sizeBytes }
    return { ...piece, receipt: receipts.give(leaseId, piece) }
  }

  /** How much its account may still keep, and whether outputs of the job wait for its end. */
  async function roomOf(lease: Lease) {
    const { job } = await held.mustFind(lease)
    const maxBytes = Math.max(0, await deps.storageLeft(job.accountId))
    return { maxBytes, isHeld: deps.outputCheck?.covers(job.metadata) === true }
  }

  async function* readAll(pieces: readonly StoredPiece[]): AsyncGenerator<Uint8Array> {
    for (const { hash } of pieces) yield* (await blobs.open(hash)) as AsyncIterable<Uint8Array>
  }

  return {
    async openInput(worker, named, hash) {
      const { inputs } = await held.mustFind(toLease(worker, named))
      const input = inputs.find((each) => each.hash === hash)
      if (input === undefined) throw new ServiceError('not_found', 'the job has no such input')
      return { sizeBytes: input.sizeBytes, open: (range) => blobs.open(hash, range) }
    },
    async offer(worker, named, piece) {
      const lease = toLease(worker, named)
      const { job } = await held.mustFind(lease)
      if (!(await deps.hasBlob(job.accountId, piece.hash))) return null
      // The receipt vouches for the size, too.
      const stored = await blobs.stat(piece.hash)
      return stored?.sizeBytes === piece.sizeBytes ? receipts.give(lease.leaseId, piece) : null
    },
    async store(worker, named, { hash, source, signal }) {
      const lease = toLease(worker, named)
      const room = await roomOf(lease)
      const pending = await blobs.receive(source, { maxBytes: Math.min(MAX_PIECE_BYTES, room.maxBytes), signal })
      const isPiece = pending.sizeBytes >= MIN_PIECE_BYTES
      const clock = room.isHeld ? heldClock : isPiece ? pieceClock : deps.clock
      return keep(lease.leaseId, pending, { hash, clock })
    },
    async join(worker, named, { whole, pieces, signal }) {
      const lease = toLease(worker, named)
      for (const piece of pieces) receipts.mustHold(lease.leaseId, piece, piece.receipt)
      // Nothing is read that cannot come out right.
      if (pieces.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) !== whole.sizeBytes) {
        throw invalidField('pieces', `must have ${whole.sizeBytes} bytes together`)
      }
      const { maxBytes, isHeld } = await roomOf(lease)
      if (whole.sizeBytes > maxBytes) throw new ServiceError('payload_too_large', `more than ${maxBytes} bytes`)
      const pending = await blobs.receive(readAll(pieces), { maxBytes, signal })
      return keep(lease.leaseId, pending, { hash: whole.hash, clock: isHeld ? heldClock : deps.clock })
    },
  }
}
