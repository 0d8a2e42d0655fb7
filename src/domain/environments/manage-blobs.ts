/**
 * Files that accounts upload for their builds: announced with what they will be, sent to an address that needs no credential, and taken
 * only when they are exactly that. What is taken is stored as all other bytes are.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { AuditEntry } from '../accounts/audit.ts'
import { type BlobStore, type SettleBlobDeps, settleBlob } from '../assets/blob-store.ts'
import { ServiceError } from '../errors.ts'
import type { BlobKind } from './blob.ts'
import type { BlobLinks } from './blob-links.ts'
import type { BuildBlobStore, StoredBuildBlob } from './build-blob-store.ts'
import type { BuildCaller } from './build-caller.ts'
import { actorOf, mustBuild } from './build-caller.ts'
import { BuildError } from './build-error.ts'

interface BlobWish {
  readonly kind: BlobKind
  readonly filename: string
  readonly sha256: string
  readonly sizeBytes: number
}

interface Announced {
  readonly blob: StoredBuildBlob
  /** null: the account has the bytes already. */
  readonly upload: { readonly path: string; readonly expiresAt: Date } | null
}

export interface ManageBlobs {
  /** Throws BuildError. */
  announce(caller: BuildCaller, wish: BlobWish): Promise<Announced>
  /** The bytes of an announced file, from whoever has its address. Throws link_invalid, hash_mismatch and what the storage of bytes throws. */
  receive(
    id: string,
    query: string,
    sent: { readonly source: AsyncIterable<Uint8Array>; readonly signal: AbortSignal },
  ): Promise<void>
  list(caller: BuildCaller, kind: BlobKind | null): Promise<readonly StoredBuildBlob[]>
  /** Throws link_invalid. */
  open(id: string, query: string): Promise<{ readonly blob: StoredBuildBlob; readonly hash: string }>
}

interface BlobBounds {
  readonly maxFileBytes: number
  readonly maxFiles: number
  readonly maxBytes: number
}

interface ManageBlobsDeps {
  readonly store: BuildBlobStore
  readonly audited: (entry: AuditEntry) => { readonly buildBlobs: BuildBlobStore }
  readonly mayBuild: (accountId: string) => boolean
  readonly blobs: Pick<BlobStore, 'receive'>
  readonly assets: SettleBlobDeps['assets']
  readonly links: BlobLinks
  readonly newId: () => string
  readonly bounds: BlobBounds
  readonly clock: Clock
}

// Long enough for many gigabytes over a slow line; whoever comes later asks for a new address.
const UPLOAD_MS = 24 * 3_600_000
const MAX_LISTED = 1000
// Longer than an address is good for.
const ANNOUNCED_MS = 2 * UPLOAD_MS
const UNUSED_MS = 30 * 24 * 3_600_000
const SWEPT_AT_ONCE = 500

/** Forgets uploads that never came, and files that no build and no release has named for a month. */
export function createSweepBlobs({ store, clock }: Pick<ManageBlobsDeps, 'store' | 'clock'>) {
  return async function sweepBlobs(): Promise<void> {
    const now = clock.now()
    const before = (ms: number) => new Date(now.getTime() - ms)
    const query = { announcedBefore: before(ANNOUNCED_MS), unusedBefore: before(UNUSED_MS), now, limit: SWEPT_AT_ONCE }
    await store.removeUnused(query)
  }
}

export function createManageBlobs(deps: ManageBlobsDeps): ManageBlobs {
  const { store, audited, links, bounds, clock } = deps

  return {
    async announce(caller, wish) {
      mustBuild(deps, caller)
      if (wish.sizeBytes > bounds.maxFileBytes)
        throw new BuildError(
          'blob_limit',
          `${wish.filename} has more than the ${bounds.maxFileBytes} bytes that a file may have here`,
        )
      const id = `blob-${deps.newId()}`
      const createdAt = clock.now()
      const { kind, filename, sizeBytes } = wish
      const sha256 = wish.sha256.toLowerCase()
      const entry = { action: 'build.blob.announce', subject: id, details: { kind, filename, sha256, sizeBytes } }
      const { buildBlobs } = audited({ ...entry, actor: actorOf(caller), at: createdAt })
      const made = { id, accountId: caller.accountId, kind, filename, sha256, sizeBytes, createdAt }
      const announced = await buildBlobs.announce(made, { count: bounds.maxFiles, bytes: bounds.maxBytes })
      if (announced.outcome === 'too_many')
        throw new BuildError(
          'blob_limit',
          `an account may have ${bounds.maxFiles} uploaded files; delete builds and releases that use some`,
        )
      if (announced.outcome === 'no_room')
        throw new BuildError(
          'blob_limit',
          `the uploaded files of an account may come to ${bounds.maxBytes} bytes; delete builds and releases that use some`,
        )
      const { blob } = announced
      if (blob.uploadedAt !== null) return { blob, upload: null }
      const expiresAt = new Date(createdAt.getTime() + UPLOAD_MS)
      return { blob, upload: { path: links.sign(blob.id, 'put', expiresAt), expiresAt } }
    },
    async receive(id, query, { source, signal }) {
      links.verify(id, 'put', query)
      const blob = await store.findById(id)
      if (blob === null) throw new ServiceError('not_found', 'this upload was given up: announce the file again')
      const digest = createHash('sha256')
      async function* hashed(): AsyncGenerator<Uint8Array> {
        for await (const chunk of source) {
          digest.update(chunk)
          yield chunk
        }
      }
      const pending = await deps.blobs.receive(hashed(), { maxBytes: blob.sizeBytes, signal })
      const sha256 = digest.digest('hex')
      if (pending.sizeBytes !== blob.sizeBytes || sha256 !== blob.sha256) {
        await pending.discard()
        const came = `${pending.sizeBytes} bytes with the sha256 ${sha256} came`
        throw new ServiceError('hash_mismatch', `${came}; ${blob.sizeBytes} with ${blob.sha256} were announced`)
      }
      // A second time, because the answer to the first was lost: these are the same bytes.
      if (blob.uploadedAt !== null) return pending.discard()
      await settleBlob(pending, { assets: deps.assets, clock })
      const at = clock.now()
      const entry = { action: 'build.blob.upload', subject: id, details: { sha256, sizeBytes: blob.sizeBytes } }
      const { buildBlobs } = audited({ ...entry, actor: `upload of account ${blob.accountId}`, at })
      await buildBlobs.complete(id, pending.hash, at)
    },
    async list(caller, kind) {
      mustBuild(deps, caller)
      return store.list(caller.accountId, { kind, limit: MAX_LISTED })
    },
    async open(id, query) {
      links.verify(id, 'get', query)
      const blob = await store.findById(id)
      if (blob === null || blob.hash === null) throw new ServiceError('not_found', 'these bytes are gone')
      return { blob, hash: blob.hash }
    },
  }
}
