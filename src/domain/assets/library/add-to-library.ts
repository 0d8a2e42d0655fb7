/**
 * New files of a library: uploaded, or made of bytes that the account has. Their tags say where they go: `input`, `output` and `temp` are
 * the folders of those names, `models` with a folder is a file of weights, and without any of them the file is kept in no folder, as
 * pictures that only show what another file looks like.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { extensionFromType } from '../../../../lib/files/mime.ts'
import { ServiceError } from '../../errors.ts'
import type { AssetStore } from '../asset-store.ts'
import { contentTypeOf } from '../create/asset-fields.ts'
import type { AssetFromHash } from '../create/asset-from-hash.ts'
import type { UploadAsset } from '../create/upload-asset.ts'
import type { AdmitFields, UploadFields } from '../create/upload-fields.ts'
import type { UploadSource } from '../create/upload-policy.ts'
import { type Library, type LibraryChange, readChange } from './library.ts'
import { type LibraryEntry, readPlace } from './library-entry.ts'

/** What is said of a new file. */
export interface LibraryFields {
  /** Its own name, within its folder. */
  readonly fileName: string
  readonly tags: readonly string[]
  /** null: as the name suggests. */
  readonly contentType: string | null
  /** A JSON object as text; null: none. */
  readonly metadata: string | null
  readonly previewId: string | null
}

interface LibraryUpload {
  readonly accountId: string
  readonly source: UploadSource
  /** Called once all bytes have come: fields may come behind them. */
  describe(): LibraryFields
  /** All is known before the first byte, so that what can be refused is refused before it. */
  readonly isDescribed?: boolean
  /** null: a new one. */
  readonly assetId: string | null
  readonly signal?: AbortSignal
}

interface FromHash extends Omit<LibraryFields, 'fileName'> {
  readonly accountId: string
  /** Plain lower-case hex. */
  readonly hash: string
  /** null: the name that the bytes have already. */
  readonly fileName: string | null
}

export interface LibraryCreation {
  readonly entry: LibraryEntry
  readonly isNew: boolean
}

/** Each throws what an upload throws. */
export interface AddToLibrary {
  /** Refuses now what an upload would refuse for what is said of it. */
  admit(fields: LibraryFields): Promise<void>
  upload(upload: LibraryUpload): Promise<LibraryCreation>
  /** Throws `blob_not_found`: bytes of others look like bytes that nobody has. */
  fromHash(request: FromHash): Promise<LibraryCreation>
}

interface AddDeps {
  readonly library: Pick<Library, 'find' | 'change'>
  readonly assets: Pick<AssetStore, 'findNewestByHash'>
  readonly uploadAsset: UploadAsset
  readonly assetFromHash: AssetFromHash
  readonly admitFields: AdmitFields
  readonly clock: Clock
}

export function createAddToLibrary(deps: AddDeps): AddToLibrary {
  const { library, assets, uploadAsset, assetFromHash, clock } = deps

  /** What is not part of the record itself. */
  async function note(accountId: string, assetId: string, fields: LibraryFields) {
    const entry = await library.find(accountId, assetId)
    const change = toChange(fields, entry)
    return Object.keys(change).length === 0 ? entry : library.change(accountId, assetId, change)
  }

  async function findExisting(accountId: string, assetId: string | null): Promise<LibraryEntry | null> {
    if (assetId === null) return null
    try {
      return await library.find(accountId, assetId)
    } catch (error) {
      if (error instanceof ServiceError && error.refusal === 'not_found') return null
      throw error
    }
  }

  return {
    async admit(fields) {
      await deps.admitFields(toUploadFields(fields))
    },
    async upload({ accountId, source, describe, isDescribed = false, assetId, signal }) {
      const existing = await findExisting(accountId, assetId)
      if (existing !== null) return { entry: existing, isNew: false }
      const { asset, createdNew } = await uploadAsset({
        ...{ accountId, source, fields: isDescribed ? toUploadFields(describe()) : null, idempotencyKey: null },
        finalFields: () => toUploadFields(describe()),
        ...(assetId !== null && { assetId }),
        ...(signal !== undefined && { signal }),
      })
      return { entry: await note(accountId, asset.id, describe()), isNew: createdNew }
    },
    async fromHash({ accountId, hash, fileName, ...said }) {
      const [source] = await assets.findNewestByHash(accountId, [hash], clock.now())
      const own = source?.filePath?.split('/').at(-1)
      const fields = {
        ...said,
        fileName: fileName ?? own ?? `${hash}.${extensionFromType(source?.contentType ?? '') ?? 'bin'}`,
      }
      const { filePath, tags } = toUploadFields(fields)
      const { asset, isNewReference } = await assetFromHash({ accountId, hash, filePath, tags, expiresInSeconds: null })
      return { entry: await note(accountId, asset.id, fields), isNew: isNewReference }
    },
  }
}

function toChange(
  { fileName, metadata, previewId }: Omit<LibraryFields, 'contentType'>,
  { filePath }: Pick<LibraryEntry, 'filePath'>,
) {
  const change: LibraryChange = {
    // A file in a folder is called as it is called there.
    ...(filePath === null && { name: fileName }),
    ...(metadata !== null && { metadata }),
    ...(previewId !== null && { previewId }),
  }
  return change
}

/** Everything that can be refused is refused here, before there is a record. Throws `invalid_field`. */
function toUploadFields(fields: LibraryFields): UploadFields {
  const { fileName, tags, contentType } = fields
  const { filePath, ownTags } = readPlace(tags, fileName)
  readChange({ ...toChange(fields, { filePath }), ...(contentType !== null && { contentType }) })
  return {
    ...{ filePath, tags: ownTags, contentType: contentType ?? contentTypeOf(fileName) },
    ...{ expectedHash: null, expiresInSeconds: null },
  }
}
