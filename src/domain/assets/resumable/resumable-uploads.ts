/**
 * Uploads that can be continued: begun with their whole size, sent in as many requests as it takes, through any process, and in the end
 * the same asset as any other upload. What an account may not keep is refused before the first byte. How far an upload has come is
 * asked of the bytes themselves, so a crash leaves nothing that says otherwise; a whole one that could not be ended is ended by
 * whoever asks about it next.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { forAccount, type PerAccount } from '../../accounts/limits/tiers.ts'
import { ServiceError } from '../../errors.ts'
import type { BlobStore } from '../blob-store.ts'
import type { AdmitFields, UploadFields } from '../create/upload-fields.ts'
import type { StorageQuota } from '../storage-quota.ts'
import type { FinishUpload } from './finish-upload.ts'
import { LEASE_MS, type UploadHold, type UploadLeases } from './upload-leases.ts'
import { type ResumableUpload, tooMuch, type UploadStore } from './upload-store.ts'

interface CreateRequest {
  readonly accountId: string
  readonly lengthBytes: number
  readonly fields: UploadFields
  readonly metadata: string
}

interface UploadName {
  readonly accountId: string
  readonly id: string
}

interface AppendRequest extends UploadName {
  readonly offsetBytes: number
  readonly source: AsyncIterable<Uint8Array>
  readonly signal?: AbortSignal
}

export interface UploadStanding {
  readonly upload: ResumableUpload
  readonly offsetBytes: number
}

/** All throw ServiceError; an upload of another account looks like one that does not exist. */
export interface ResumableUploads {
  create(request: CreateRequest): Promise<UploadStanding>
  find(name: UploadName): Promise<UploadStanding>
  /** Whatever arrives is kept. Throws offset_mismatch, upload_locked and, when the source breaks off, what it broke with. */
  append(request: AppendRequest): Promise<UploadStanding>
  terminate(name: UploadName): Promise<void>
}

interface ResumableDeps {
  readonly store: UploadStore
  readonly partials: BlobStore['partials']
  readonly leases: UploadLeases
  readonly admitFields: AdmitFields
  readonly finish: FinishUpload
  readonly quota: Pick<StorageQuota, 'mustHaveRoom'>
  readonly maxBytes: PerAccount
  readonly newId: NewId
  readonly clock: Clock
}

// Below the two days after which a bucket is swept of what was begun and never ended.
const LIFETIME_MS = 36 * 3_600_000
const MAX_OPEN = 100
const TOO_MANY_RETRY_SECONDS = 60

export function createResumableUploads(deps: ResumableDeps): ResumableUploads {
  const { store, partials, leases, clock } = deps
  const { standingOf, end, runHeld, send } = createHeldUploads(deps)

  async function findUpload({ accountId, id }: UploadName): Promise<ResumableUpload> {
    const upload = await store.find(accountId, id)
    if (upload === null || upload.expiresAt <= clock.now()) throw unknown()
    return upload
  }

  return {
    async create({ accountId, lengthBytes, fields, metadata }) {
      await deps.admitFields(fields)
      const maxBytes = forAccount(deps.maxBytes, accountId)
      if (lengthBytes > maxBytes) throw tooLarge(maxBytes)
      const left = await deps.quota.mustHaveRoom(accountId, lengthBytes)
      const now = clock.now()
      const upload: ResumableUpload = {
        ...{ id: deps.newId(), accountId, lengthBytes, fields, metadata, hash: null, assetId: null },
        place: lengthBytes === 0 ? null : await partials.begin(),
        ...{ createdAt: now, expiresAt: new Date(now.getTime() + LIFETIME_MS) },
      }
      // Checked again in the transaction that counts uploads: several may be begun at the same time.
      const bound = Number.isFinite(left) ? left + (await store.openBytes(accountId)) : null
      const outcome = await store.create(upload, { maxCount: MAX_OPEN, maxBytes: bound })
      if (outcome !== 'created') {
        if (upload.place !== null) await partials.remove(upload.place)
        if (outcome === 'too_many') throw tooMany()
        await deps.quota.mustHaveRoom(accountId, Number.POSITIVE_INFINITY)
      }
      return lengthBytes === 0 ? runHeld(upload.id, end) : { upload, offsetBytes: 0 }
    },
    async find(name) {
      await leases.settled(name.id)
      const upload = await findUpload(name)
      const standing = await standingOf(upload)
      const isUnended = upload.assetId === null && standing.offsetBytes === upload.lengthBytes
      return isUnended
        ? runHeld(upload.id, (hold) => (hold.upload.assetId === null ? end(hold) : standingOf(hold.upload)))
        : standing
    },
    async append(request) {
      const upload = await findUpload(request)
      if (upload.assetId === null) return runHeld(upload.id, (hold) => send(hold, request))
      if (request.offsetBytes !== upload.lengthBytes) throw wrongOffset(upload.lengthBytes)
      for await (const chunk of request.source) if (chunk.length > 0) throw tooMuch(upload.lengthBytes)
      return standingOf(upload)
    },
    async terminate(name) {
      const upload = await findUpload(name)
      await leases.run(upload.id, async ({ leaseId }) => {
        if (upload.place !== null) await partials.remove(upload.place)
        await store.remove(upload.id, leaseId)
      })
    },
  }
}

/** What is done with an upload under its lease. */
function createHeldUploads({ store, partials, leases, finish }: ResumableDeps) {
  async function sizeOf(upload: ResumableUpload): Promise<number> {
    if (isWhole(upload)) return upload.lengthBytes
    return upload.place === null ? 0 : partials.sizeOf(upload.place)
  }

  async function standingOf(upload: ResumableUpload): Promise<UploadStanding> {
    return { upload, offsetBytes: await sizeOf(upload) }
  }

  /** Under the lease, which ends with it. */
  async function end(hold: UploadHold): Promise<UploadStanding> {
    hold.work()
    const assetId = await finish(hold)
    return standingOf({ ...hold.upload, assetId, hash: null })
  }

  /** The lease ends whatever happens; one that cannot be ended lapses. */
  function runHeld(id: string, work: (hold: UploadHold) => Promise<UploadStanding>): Promise<UploadStanding> {
    return leases.run(id, async (hold) => {
      let assetId: string | null = null
      try {
        const standing = await work(hold)
        assetId = standing.upload.assetId
        return standing
      } finally {
        await store.release(id, hold.leaseId, { assetId }).catch(() => {})
      }
    })
  }

  async function send(hold: UploadHold, { offsetBytes, source, signal }: AppendRequest): Promise<UploadStanding> {
    const { place, lengthBytes } = hold.upload
    const found = await sizeOf(hold.upload)
    if (found !== offsetBytes) throw wrongOffset(found)
    let sizeBytes = found
    if (place !== null && found < lengthBytes) {
      const signals = signal === undefined ? hold.signal : AbortSignal.any([signal, hold.signal])
      const options = { offsetBytes, lengthBytes, signal: signals }
      const appended = await partials.append(place, follow(source, hold), options)
      sizeBytes = appended.sizeBytes
      if (appended.failure !== null && sizeBytes < lengthBytes) throw appended.failure
    }
    return sizeBytes === lengthBytes ? end(hold) : { upload: hold.upload, offsetBytes: sizeBytes }
  }

  return { standingOf, end, runHeld, send }
}

/** Passes chunks on while the lease is held; each one shows that the client is still sending. */
async function* follow(source: AsyncIterable<Uint8Array>, hold: UploadHold): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    hold.touch()
    yield chunk
  }
}

/** Once its hash is known, all of its bytes have arrived and may lie under their final name. */
function isWhole({ hash, assetId }: ResumableUpload): boolean {
  return hash !== null || assetId !== null
}

function unknown(): ServiceError {
  return new ServiceError('not_found', 'there is no upload with this id, or no longer')
}

function wrongOffset(offsetBytes: number): ServiceError {
  const message = `the service has ${offsetBytes} bytes of this upload: go on from there`
  return new ServiceError('offset_mismatch', message, { details: { offset: offsetBytes } })
}

function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `the content is larger than the limit of ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  })
}

function tooMany(): ServiceError {
  const message = `the account has ${MAX_OPEN} unfinished uploads; end or delete some of them`
  return new ServiceError('queue_full', message, { retryAfterSeconds: TOO_MANY_RETRY_SECONDS })
}

/** Removes uploads that nobody continued in their time, with their bytes. */
interface SweepDeps {
  readonly store: Pick<UploadStore, 'holdExpired' | 'remove'>
  readonly partials: Pick<BlobStore['partials'], 'remove'>
  readonly newId: NewId
  readonly clock: Clock
}

const PORTION = 20

/** Returns how many went. */
export function createSweepUploads({ store, partials, newId, clock }: SweepDeps) {
  return async function sweepUploads({ signal }: { readonly signal?: AbortSignal } = {}): Promise<number> {
    let removed = 0
    for (;;) {
      const leaseId = newId()
      const now = clock.now()
      const held = await store.holdExpired({ leaseId, now, until: new Date(now.getTime() + LEASE_MS) }, PORTION)
      for (const { id, place } of held) {
        if (place !== null) await partials.remove(place)
        await store.remove(id, leaseId)
      }
      removed += held.length
      if (held.length < PORTION || signal?.aborted === true) return removed
    }
  }
}
