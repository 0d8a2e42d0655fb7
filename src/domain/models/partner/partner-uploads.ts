/**
 * Files that partner nodes hand to a provider: an address to send them to, and one to read them from, both of this service and
 * both signed. The file becomes an asset of the account and counts as one. Nothing is remembered between the two steps.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { NewId } from '../../../../lib/ids.ts'
import { contentTypeOf, readContentType } from '../../assets/create/asset-fields.ts'
import { readFilePath } from '../../assets/create/file-path.ts'
import type { UploadAsset } from '../../assets/create/upload-asset.ts'
import type { SignContentUrl } from '../../assets/signed-url.ts'
import { ServiceError } from '../../errors.ts'
import type { SignedClaims } from './run-tokens.ts'

interface UploadWish {
  readonly accountId: string
  readonly fileName: string
  /** null: what the name suggests. */
  readonly contentType: string | null
}

interface UploadPlace {
  readonly token: string
  /** Host-relative, without the mount prefix. */
  readonly contentPath: string
  readonly expiresAt: Date
}

export interface PartnerUploads {
  /** Throws invalid_field. */
  begin(wish: UploadWish): UploadPlace
  /** Throws link_invalid, and what any upload throws. */
  receive(token: string, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
}

interface PartnerUploadDeps {
  readonly claims: SignedClaims
  readonly signContent: SignContentUrl
  readonly uploadAsset: UploadAsset
  readonly newId: NewId
  readonly clock: Clock
}

// As long as the hosted service keeps them; a provider reads them within minutes.
const LIFE_SECONDS = 24 * 60 * 60
const SEND_MS = 60 * 60 * 1000
const NAME_MAX_LENGTH = 128

export function createPartnerUploads(deps: PartnerUploadDeps): PartnerUploads {
  const { claims, signContent, uploadAsset, newId, clock } = deps
  return {
    begin({ accountId, fileName, contentType }) {
      const assetId = newId()
      // The same bytes under the same name are one asset; this one must have the id that is promised here.
      const path = readFilePath(`partner-nodes/${assetId}/${toName(fileName)}`).path
      const type = contentType === null ? contentTypeOf(fileName) : readContentType(contentType)
      const nowMs = clock.now().getTime()
      const expiresAt = new Date(nowMs + LIFE_SECONDS * 1000)
      return {
        token: claims.sign({ account: accountId, asset: assetId, path, type }, new Date(nowMs + SEND_MS)),
        contentPath: signContent({ accountId, assetId, expiresAt }),
        expiresAt,
      }
    },
    async receive(token, source, signal) {
      const { account, asset, path, type } = claims.verify(token) ?? {}
      if (typeof account !== 'string' || typeof asset !== 'string' || typeof path !== 'string')
        throw new ServiceError('link_invalid', 'this address takes no upload, or not any more; ask for a new one')
      const fields = {
        filePath: path,
        contentType: typeof type === 'string' ? type : 'application/octet-stream',
        expectedHash: null,
        tags: [],
        expiresInSeconds: LIFE_SECONDS,
      }
      await uploadAsset({ accountId: account, source, fields, idempotencyKey: null, assetId: asset, signal })
    },
  }
}

/** The last part of a path, cut to a sensible length from its beginning: the ending tells the type. */
function toName(fileName: string): string {
  const name = fileName.split(/[/\\]/).at(-1) ?? ''
  return name.length > NAME_MAX_LENGTH ? name.slice(-NAME_MAX_LENGTH) : name
}
