/**
 * Large uploads that go to the storage directly: begun here, sent by the client part by part to addresses that are signed here, and
 * completed here, which reads the whole once and makes the record as for any other upload. Nothing is remembered in between: the
 * token that the client holds carries the upload, sealed for its account, so any process goes on with it.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Sealer } from '../../../../lib/sealer.ts'
import { forAccount, type PerAccount } from '../../accounts/limits/tiers.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { DirectUploads, OpenUpload, SentPart } from '../blob-store.ts'
import type { StorageQuota } from '../storage-quota.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'
import { readFilePath } from './file-path.ts'
import type { UploadAsset, UploadFields } from './upload-asset.ts'
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
  readonly signal?: AbortSignal
}

/** All throw ServiceError; a token of another account looks like one that does not exist. */
interface DirectUploadActions {
  begin(request: BeginRequest): Promise<BegunUpload>
  /** One address for each of these parts. */
  signParts(holder: TokenHolder, numbers: readonly number[]): Promise<string[]>
  complete(request: CompleteRequest): Promise<AssetCreation>
  abandon(holder: TokenHolder): Promise<void>
}

interface DirectUploadDeps {
  readonly directUploads: DirectUploads
  readonly sealer: Sealer
  readonly uploadAsset: UploadAsset
  readonly quota: Pick<StorageQuota, 'leftFor'>
  readonly maxBytes: PerAccount
  readonly clock: Clock
}

const MIB = 1024 * 1024
// The storage takes ten thousand parts, none but the last below 5 MiB.
const MAX_PARTS = 10_000
const MIN_PART_BYTES = 16 * MIB
const LIFETIME_MS = 24 * 3_600_000
const MAX_SIGNED_AT_ONCE = 100

interface Carried {
  readonly upload: OpenUpload
  readonly sizeBytes: number
  readonly partCount: number
  readonly expiresAtMs: number
  readonly fields: UploadFields
}

export function createDirectUploadActions(deps: DirectUploadDeps): DirectUploadActions {
  const { directUploads, sealer, uploadAsset, quota, clock } = deps

  function open({ accountId, token }: TokenHolder): Carried {
    const plain = sealer.open(Buffer.from(token, 'base64url'), toContext(accountId))
    const carried = plain === null ? null : (JSON.parse(Buffer.from(plain).toString()) as Carried)
    if (carried === null || carried.expiresAtMs <= clock.now().getTime()) {
      throw new ServiceError('not_found', 'there is no upload with this token, or not any more')
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
      const carried: Carried = { upload, sizeBytes, partCount, expiresAtMs, fields }
      const sealed = sealer.seal(Buffer.from(JSON.stringify(carried)), toContext(accountId))
      return {
        token: Buffer.from(sealed).toString('base64url'),
        partBytes,
        partCount,
        expiresAt: new Date(expiresAtMs),
      }
    },
    async signParts(holder, numbers) {
      const { upload, partCount } = open(holder)
      const isRight = numbers.length <= MAX_SIGNED_AT_ONCE && numbers.every((number) => isPart(number, partCount))
      if (!isRight) throw invalidField('parts', `must be at most ${MAX_SIGNED_AT_ONCE} numbers from 1 to ${partCount}`)
      return Promise.all(numbers.map((number) => directUploads.signPart(upload, number)))
    },
    async complete({ parts, idempotencyKey, signal, ...holder }) {
      const { upload, sizeBytes, partCount, fields } = open(holder)
      const isWhole = parts.length === partCount && parts.every(({ number }, index) => number === index + 1)
      if (!isWhole) throw invalidField('parts', `must name the parts 1 to ${partCount} in their order`)
      return uploadAsset({
        accountId: holder.accountId,
        source: { receive: (options) => directUploads.complete(upload, { ...options, parts, sizeBytes }) },
        fields,
        idempotencyKey,
        ...(signal && { signal }),
      })
    },
    abandon: (holder) => directUploads.abandon(open(holder).upload),
  }
}

/** What would be refused in the end is refused before the client sends gigabytes. */
function checkFields(fields: UploadFields, now: Date): void {
  readFilePath(fields.filePath)
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
