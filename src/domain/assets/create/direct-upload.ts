/**
 * Large uploads that go to the storage directly: begun here, sent by the client part by part to addresses that are signed here, and
 * completed here, which reads the whole once and makes the record as for any other upload. Nothing is remembered in between: the
 * token that the client holds carries the upload and the id of the asset that it becomes, sealed for its account. So any process
 * goes on with it, and a completion whose answer was lost is sent again and finds the asset.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import type { Sealer } from '../../../../lib/sealer.ts'
import { forAccount, type PerAccount } from '../../accounts/limits/tiers.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { AssetStore } from '../asset-store.ts'
import type { DirectUploads, OpenUpload, PutOptions, SentPart } from '../blob-store.ts'
import type { StorageQuota } from '../storage-quota.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'
import { readFilePath } from './file-path.ts'
import type { UploadAsset } from './upload-asset.ts'
import type { UploadFields } from './upload-fields.ts'
import type { AssetCreation } from './upload-policy.ts'

interface BeginRequest {
  readonly accountId: string
  readonly sizeBytes: number
  readonly fields: UploadFields
}

interface BegunUpload {
  readonly token: string
  /** Every part but the last is as large. */
  readonly partBytes: number
  readonly partCount: number
  readonly expiresAt: Date
}

interface TokenHolder {
  readonly accountId: string
  readonly token: string
}

interface CompleteRequest extends TokenHolder {
  readonly parts: readonly SentPart[]
  readonly idempotencyKey: string | null
}

export interface SignedPart {
  readonly number: number
  readonly sizeBytes: number
  /** Takes a PUT of exactly so many bytes. */
  readonly url: string
}

/** All throw ServiceError; a token of another account looks like one that does not exist. */
export interface DirectUploadActions {
  begin(request: BeginRequest): Promise<BegunUpload>
  /** One address for each of these parts. */
  signParts(holder: TokenHolder, numbers: readonly number[]): Promise<SignedPart[]>
  /** May be repeated: it goes on to its end without whoever asked, and later ones get the asset that it made. */
  complete(request: CompleteRequest): Promise<AssetCreation>
  abandon(holder: TokenHolder): Promise<void>
}

interface DirectUploadDeps {
  readonly directUploads: DirectUploads
  readonly sealer: Sealer
  readonly uploadAsset: UploadAsset
  readonly assets: Pick<AssetStore, 'find'>
  readonly newId: NewId
  readonly quota: Pick<StorageQuota, 'leftFor'>
  readonly maxBytes: PerAccount
  readonly clock: Clock
}

const MIB = 1024 * 1024
// The storage takes ten thousand parts, none but the last below 5 MiB.
const MAX_PARTS = 10_000
const MIN_PART_BYTES = 16 * MIB
const LIFETIME_MS = 24 * 3_600_000
export const MAX_SIGNED_AT_ONCE = 100

interface Carried {
  readonly upload: OpenUpload
  readonly assetId: string
  readonly sizeBytes: number
  readonly partBytes: number
  readonly partCount: number
  readonly expiresAtMs: number
  readonly fields: UploadFields
}

export function createDirectUploadActions(deps: DirectUploadDeps): DirectUploadActions {
  const { directUploads, sealer, quota, clock } = deps
  // Reading a large object takes longer than some clients wait.
  const completing = new Map<string, Promise<AssetCreation>>()
  const completeOnce = createCompleteOnce(deps)

  function open({ accountId, token }: TokenHolder): Carried {
    const plain = sealer.open(Buffer.from(token, 'base64url'), toContext(accountId))
    const carried = plain === null ? null : (JSON.parse(Buffer.from(plain).toString()) as Carried)
    if (carried === null || carried.expiresAtMs <= clock.now().getTime()) {
      throw new ServiceError('not_found', 'there is no upload with this token, or no longer')
    }
    return carried
  }

  return {
    async begin({ accountId, sizeBytes, fields }) {
      checkFields(fields, clock.now())
      if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 1)
        throw invalidField('size_bytes', 'must be a positive whole number')
      const maxBytes = Math.min(forAccount(deps.maxBytes, accountId), await quota.leftFor(accountId))
      if (sizeBytes > maxBytes) {
        throw new ServiceError('payload_too_large', `the content is larger than the limit of ${maxBytes} bytes`, {
          details: { max_bytes: maxBytes },
        })
      }
      const partBytes = Math.max(MIN_PART_BYTES, Math.ceil(sizeBytes / MAX_PARTS / MIB) * MIB)
      const partCount = Math.ceil(sizeBytes / partBytes)
      const expiresAtMs = clock.now().getTime() + LIFETIME_MS
      const upload = await directUploads.begin()
      const assetId = deps.newId()
      const carried: Carried = { upload, assetId, sizeBytes, partBytes, partCount, expiresAtMs, fields }
      const sealed = sealer.seal(Buffer.from(JSON.stringify(carried)), toContext(accountId))
      return {
        token: Buffer.from(sealed).toString('base64url'),
        partBytes,
        partCount,
        expiresAt: new Date(expiresAtMs),
      }
    },
    async signParts(holder, numbers) {
      const { upload, partCount, ...carried } = open(holder)
      const isRight = numbers.length <= MAX_SIGNED_AT_ONCE && numbers.every((number) => isPart(number, partCount))
      if (!isRight) throw invalidField('parts', `must be at most ${MAX_SIGNED_AT_ONCE} numbers from 1 to ${partCount}`)
      return Promise.all(
        numbers.map(async (number) => {
          const sizeBytes = Math.min(carried.partBytes, carried.sizeBytes - (number - 1) * carried.partBytes)
          return { number, sizeBytes, url: await directUploads.signPart(upload, { number, sizeBytes }) }
        }),
      )
    },
    async complete({ parts, idempotencyKey, ...holder }) {
      const carried = open(holder)
      const isWhole = parts.length === carried.partCount && parts.every(({ number }, index) => number === index + 1)
      if (!isWhole) throw invalidField('parts', `must name the parts 1 to ${carried.partCount} in their order`)
      const { assetId } = carried
      const running = completing.get(assetId)
      if (running !== undefined) return running
      const begun = completeOnce(carried, { parts, idempotencyKey, accountId: holder.accountId })
      completing.set(assetId, begun)
      return begun.finally(() => completing.delete(assetId))
    },
    abandon: (holder) => directUploads.abandon(open(holder).upload),
  }
}

function createCompleteOnce({ directUploads, uploadAsset, assets, clock }: DirectUploadDeps) {
  async function findCompleted(accountId: string, assetId: string): Promise<AssetCreation | null> {
    const asset = await assets.find(accountId, assetId, clock.now())
    return asset === null ? null : { asset, createdNew: false }
  }

  async function completeOnce(
    { upload, assetId, sizeBytes, fields }: Carried,
    { accountId, parts, idempotencyKey }: Omit<CompleteRequest, 'token'>,
  ): Promise<AssetCreation> {
    const before = await findCompleted(accountId, assetId)
    if (before !== null) return before
    const source = {
      receive: (options: PutOptions) => directUploads.complete(upload, { ...options, parts, sizeBytes }),
    }
    try {
      return await uploadAsset({ accountId, source, fields, assetId, idempotencyKey })
    } catch (error) {
      // Another process may have been faster.
      const meanwhile = await findCompleted(accountId, assetId).catch(() => null)
      if (meanwhile === null) throw error
      return meanwhile
    }
  }

  return completeOnce
}

/** What would be refused in the end is refused before the client sends gigabytes. */
function checkFields(fields: UploadFields, now: Date): void {
  if (fields.filePath !== null) readFilePath(fields.filePath)
  readContentType(fields.contentType)
  readTags(fields.tags)
  readExpiry(fields.expiresInSeconds, { now, defaultMs: null })
}

function isPart(number: number, partCount: number): boolean {
  return Number.isInteger(number) && number >= 1 && number <= partCount
}

function toContext(accountId: string): string {
  return `direct upload\n${accountId}`
}
