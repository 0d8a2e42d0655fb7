import { invalidField } from '../../errors.ts'
import { contentTypeOf } from './asset-fields.ts'
import type { UploadAsset } from './upload-asset.ts'
import type { AssetCreation } from './upload-policy.ts'

interface HostFile extends AsyncDisposable {
  /** Its own name, without folders. */
  readonly name: string
  /** To be read once. */
  readonly source: AsyncIterable<Uint8Array>
}

export interface HostFiles {
  /** Throws `invalid_field` for a path outside of the folders, `blob_not_found` when there is no such file in them. */
  open(path: string): Promise<HostFile>
}

interface FromPathRequest {
  readonly accountId: string
  readonly path: string
  /** null: the name of the file. */
  readonly filePath: string | null
  /** null: as the name suggests. */
  readonly contentType: string | null
  readonly tags: readonly string[]
  readonly expiresInSeconds: number | null
}

/** Throws ServiceError. */
export type AssetFromPath = (request: FromPathRequest) => Promise<AssetCreation>

interface FromPathDeps {
  readonly uploadAsset: UploadAsset
  /** null: no folder is open. */
  readonly hostFiles: HostFiles | null
}

export function createAssetFromPath({ uploadAsset, hostFiles }: FromPathDeps): AssetFromPath {
  return async function assetFromPath({ accountId, path, tags, expiresInSeconds, ...request }) {
    if (hostFiles === null) {
      throw invalidField('path', 'cannot be taken: no folder of this machine is open (importDirs)')
    }
    await using file = await hostFiles.open(path)
    const filePath = request.filePath ?? file.name
    const contentType = request.contentType ?? contentTypeOf(file.name)
    const fields = { filePath, contentType, expectedHash: null, tags, expiresInSeconds }
    // Awaited here: the file must stay open until its last byte is read.
    return await uploadAsset({ accountId, source: file.source, fields, idempotencyKey: null })
  }
}
