/** Where bytes are kept, and how they are stored before any record points at them. */
import type { Readable } from 'node:stream'
import type { Clock } from '../../../lib/clock.ts'
import type { AssetStore } from './asset-store.ts'

/** Bytes received and hashed, not yet under their final name. Exactly one of the two ends must be called. */
export interface PendingBlob {
  readonly hash: string
  readonly sizeBytes: number
  /** Durable once this resolves, or with the record of an output. Harmless when the same bytes are already there. */
  keep(): Promise<void>
  discard(): Promise<void>
}

export interface ByteRange {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

export interface PutOptions {
  /** Stop reading and refuse with `payload_too_large` once more bytes than this have come. */
  readonly maxBytes: number
  readonly signal?: AbortSignal
}

/** Bytes in a file of this machine, which stays there until it is given back. */
export interface BorrowedFile extends AsyncDisposable {
  readonly path: string
}

/** What an address that leads to the bytes themselves promises about the answer. */
export interface DirectAnswer {
  readonly method: 'GET' | 'HEAD'
  readonly contentType: string
  readonly disposition: string
}

/** An upload that a client sends to the storage itself. */
export interface OpenUpload {
  readonly objectKey: string
  readonly uploadId: string
}

export interface SentPart {
  /** From 1. */
  readonly number: number
  /** As the storage answered it. */
  readonly etag: string
}

interface CompleteOptions extends PutOptions {
  readonly parts: readonly SentPart[]
  /** What all parts together must be. */
  readonly sizeBytes: number
}

interface AppendOptions {
  /** Where the bytes begin: exactly at the end of those that are there. */
  readonly offsetBytes: number
  /** What the whole will be: no byte beyond it is taken. */
  readonly lengthBytes: number
  readonly signal: AbortSignal
}

/** `failure`: why the source, or whoever stores, ended before its time; null: the source came to its end. */
interface Appended {
  /** How many bytes are there now. */
  readonly sizeBytes: number
  readonly failure: unknown
}

/**
 * Bytes that come in pieces, over hours, through any process, until they are whole. One writer at a time is left to the caller.
 * Whatever `append` has taken is there when it ends, however it ends; what a crash leaves has no gap.
 */
export interface PartialBlobs {
  /** Room for bytes, under a name that every process understands. */
  begin(): Promise<string>
  /** How many bytes are there. */
  sizeOf(place: string): Promise<number>
  append(place: string, source: AsyncIterable<Uint8Array>, options: AppendOptions): Promise<Appended>
  /**
   * The whole, hashed. Bytes that this process took in itself, one after the other, are not read again. `discard` leaves them where
   * they are, and `remove` is still to be called after `keep`.
   */
  complete(place: string, options: PutOptions & { readonly sizeBytes: number }): Promise<PendingBlob>
  /** Harmless when there is nothing. */
  remove(place: string): Promise<void>
}

/** Uploads that go past this process, part by part, by addresses that are good for a while. */
export interface DirectUploads {
  begin(): Promise<OpenUpload>
  /** An address that takes a PUT of exactly so many bytes. */
  signPart(upload: OpenUpload, part: { readonly number: number; readonly sizeBytes: number }): Promise<string>
  /**
   * Joins the parts and reads the whole once: only what was read here is known by its hash. May be repeated until the bytes are
   * kept and after that. Refuses with `not_found` what was given up or collected, and with `invalid_field` parts that do not make
   * up the whole.
   */
  complete(upload: OpenUpload, options: CompleteOptions): Promise<PendingBlob>
  abandon(upload: OpenUpload): Promise<void>
}

/**
 * Content-addressed bytes. `receive` never holds more than a few chunks in memory. A full disk is refused with
 * `storage_full`, storage that does not answer with `store_unavailable`, and a failed or aborted receive leaves nothing behind.
 */
export interface BlobStore {
  receive(source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PendingBlob>
  /** null when the bytes are not there. */
  stat(hash: string): Promise<{ readonly sizeBytes: number } | null>
  /** Throws ServiceError `output_unavailable` when the bytes are not there. */
  open(hash: string, range?: ByteRange): Promise<Readable>
  /** Where an engine on this machine may read the bytes; null when they are not in a local file. */
  localPath(hash: string): string | null
  /** Fetches the bytes into a file of this machine; left out by stores whose bytes all lie in local files anyway. */
  borrow?(hash: string): Promise<BorrowedFile>
  /** An address where whoever holds it gets the bytes for a few minutes; left out by stores that have none. */
  signDirect?(hash: string, answer: DirectAnswer): Promise<string>
  /** Left out by stores that nobody else can send bytes to. */
  readonly directUploads?: DirectUploads
  readonly partials: PartialBlobs
  /**
   * Removes bytes unless `isKnown` says that they are wanted again: an ingest of the same bytes may run at the same time.
   * It is asked when no `keep` of the same bytes can end before the removal has, so an ingest either shows in the answer
   * or stores its bytes anew.
   */
  remove(hash: string, isKnown: () => Promise<boolean>): Promise<void>
}

/** What the sweep for bytes without a record needs as well. */
export interface BlobListing {
  /** Every stored hash, in portions of any size. */
  list(): AsyncIterable<readonly string[]>
}

/** The bytes of a service. */
export interface Blobs extends BlobStore, BlobListing {}

export interface SettleBlobDeps {
  readonly assets: Pick<AssetStore, 'announceBlob'>
  readonly clock: Clock
}

interface StoreBlobDeps extends SettleBlobDeps {
  readonly blobs: BlobStore
}

export interface StoredBlob {
  readonly hash: string
  readonly sizeBytes: number
}

/**
 * Stores bytes before any record points at them: they are received and hashed, announced, then given their final name.
 * Announced bytes that no record refers to are collected after the grace period, so a crash in between leaves nothing behind.
 */
export type StoreBlob = (source: AsyncIterable<Uint8Array>, options: PutOptions) => Promise<StoredBlob>

export function createStoreBlob(deps: StoreBlobDeps): StoreBlob {
  return async function storeBlob(source, options) {
    const pending = await deps.blobs.receive(source, options)
    await settleBlob(pending, deps)
    return { hash: pending.hash, sizeBytes: pending.sizeBytes }
  }
}

/** How long outputs may wait for the end of their run: longer than runs take. */
export const HELD_MS = 24 * 3_600_000

/** For bytes whose record comes hours later: they count as if they came later, so that they are collected later. */
export function toLaterClock(clock: Clock, laterMs: number): Clock {
  return { now: () => new Date(clock.now().getTime() + laterMs) }
}

/** The second half, for callers that look at the hash in between. */
export async function settleBlob(pending: PendingBlob, { assets, clock }: SettleBlobDeps): Promise<void> {
  try {
    await assets.announceBlob(pending.hash, pending.sizeBytes, clock.now())
  } catch (error) {
    await pending.discard()
    throw error
  }
  await pending.keep()
}
