/**
 * An account's files under plain names, as clients see them that think in the folders `input`, `output` and `temp`: one flat
 * list of names per folder. A name always means the newest record under it. Subfolders are remembered where an engine made
 * them, tried first, and otherwise ignored. Names are given one after the other per account: two uploads of one name at the
 * same moment get two names.
 */
import type { Readable } from 'node:stream'
import type { Clock } from '../../../lib/clock.ts'
import { createKeyedLock } from '../../../lib/waiting/semaphore.ts'
import { ServiceError } from '../errors.ts'
import type { Asset } from './asset.ts'
import type { AssetStore } from './asset-store.ts'
import { type BlobStore, type ByteRange, type PendingBlob, settleBlob } from './blob-store.ts'
import { readContentType } from './create/asset-fields.ts'
import { readFilePath } from './create/file-path.ts'
import type { UploadPolicy } from './create/upload-policy.ts'

export type FileFolder = 'input' | 'output' | 'temp'

export interface FileLocation {
  readonly folder: FileFolder
  readonly name: string
  /** '' for none. */
  readonly subfolder: string
}

export interface NamedUpload {
  readonly accountId: string
  readonly folder: FileFolder
  readonly name: string
  readonly contentType: string
  /** False: another name is chosen when the name is taken by other bytes. */
  readonly overwrite: boolean
}

/** Bytes that have come in and wait for a name. Exactly one of the two ends must be called. */
export interface ReceivedFile {
  readonly sizeBytes: number
  /** Returns the asset under the name that was chosen. */
  place(upload: NamedUpload): Promise<Asset>
  discard(): Promise<void>
}

export interface NamedFiles {
  /** Throws `payload_too_large` and `storage_full`. */
  receive(
    source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    options: { readonly accountId: string; readonly signal?: AbortSignal },
  ): Promise<ReceivedFile>
  find(accountId: string, location: FileLocation): Promise<Asset | null>
  /** The newest upload under exactly this path. */
  findUpload(accountId: string, filePath: string): Promise<Asset | null>
  /** The newest record of the account over these bytes. */
  findByHash(accountId: string, hash: string): Promise<Asset | null>
  /** The newest record of the account over each of these bytes, by hash. */
  findManyByHash(accountId: string, hashes: readonly string[]): Promise<ReadonlyMap<string, Asset>>
  /** Throws `output_unavailable` when the record is there and its bytes are not. */
  open(asset: Pick<Asset, 'hash' | 'sizeBytes'>, range?: ByteRange): Promise<Readable>
  /** Names in a folder, the newest first, at most `limit`. */
  list(accountId: string, folder: FileFolder | `models/${string}`, limit: number): Promise<readonly Asset[]>
}

interface NamedFilesDeps {
  readonly assets: AssetStore
  readonly blobs: BlobStore
  readonly clock: Clock
  readonly uploads: UploadPolicy
}

/** How many names are looked up at a time, and how far the numbering of equal names goes. */
const NAMES_PER_LOOK = 16
const MAX_NUMBER = 10_000

export function createNamedFiles(deps: NamedFilesDeps): NamedFiles {
  const { assets, blobs, clock, uploads } = deps
  const names = createKeyedLock()
  const record = createRecord(deps)

  return {
    async receive(source, { accountId, signal }) {
      const admission = await uploads.admit(accountId, toAsync(source), { signal })
      const { pending } = admission
      return {
        sizeBytes: pending.sizeBytes,
        async place(upload) {
          try {
            // Judged before anything is kept: what passes names one file, and no way out of its folder.
            readFilePath(pathOf(upload.folder, upload.name))
          } catch (error) {
            await admission.discard()
            throw error
          }
          try {
            await settleBlob(pending, deps)
            return await names.run(upload.accountId, () => record(upload, pending))
          } finally {
            admission.end()
          }
        },
        discard: () => admission.discard(),
      }
    },
    find: (accountId, location) => findNamed(deps, accountId, location),
    async findUpload(accountId, filePath) {
      const query = { filePaths: [filePath], origin: 'upload', now: clock.now() } as const
      return (await assets.findNewestByPath(accountId, query))[0] ?? null
    },
    async findByHash(accountId, hash) {
      const [newest] = await assets.findNewestByHash(accountId, [hash], clock.now())
      return newest ?? null
    },
    async findManyByHash(accountId, hashes) {
      const found = hashes.length === 0 ? [] : await assets.findNewestByHash(accountId, hashes, clock.now())
      return new Map(found.map((asset) => [asset.hash, asset]))
    },
    async open(asset, range) {
      const found = await blobs.stat(asset.hash)
      if (found?.sizeBytes !== asset.sizeBytes) {
        throw new ServiceError('output_unavailable', 'the bytes of this file are gone')
      }
      return blobs.open(asset.hash, range)
    },
    async list(accountId, folder, limit) {
      const now = clock.now()
      const prefix = folder === 'input' || folder === 'output' ? '' : `${folder}/`
      const ask = (origin: 'upload' | 'output', from: string) =>
        assets.listFiles(accountId, { origin, prefix: from, limit, now })
      if (folder === 'input') return ask('upload', '')
      if (folder === 'output') return newestFirst([await ask('output', ''), await ask('upload', 'output/')], limit)
      if (folder === 'temp') return newestFirst([await ask('output', prefix), await ask('upload', prefix)], limit)
      return ask('upload', prefix)
    },
  }
}

/** Records an upload under its name, or the next one that is free. */
function createRecord({ assets, clock, uploads }: NamedFilesDeps) {
  /** The newest record under each of these names, by name. */
  async function look(upload: NamedUpload, names: readonly string[]): Promise<ReadonlyMap<string, Asset>> {
    const spellings = new Map(names.flatMap((name) => pathsOf(upload.folder, name).map((path) => [path, name])))
    const found = await assets.findNewestByPath(upload.accountId, {
      filePaths: [...spellings.keys()],
      origin: 'upload',
      now: clock.now(),
    })
    const byName = new Map<string, Asset>()
    for (const asset of found) {
      const name = spellings.get(asset.filePath ?? '')
      if (name !== undefined && !byName.has(name)) byName.set(name, asset)
    }
    return byName
  }

  /** The first name that is free or holds the same bytes. */
  async function chooseName(upload: NamedUpload, hash: string): Promise<string> {
    if (upload.overwrite) return upload.name
    for (let first = 0; first < MAX_NUMBER; first += NAMES_PER_LOOK) {
      const names = Array.from({ length: NAMES_PER_LOOK }, (_, index) => numberedName(upload.name, first + index))
      const taken = await look(upload, names)
      const name = names.find((one) => !taken.has(one) || taken.get(one)?.hash === hash)
      if (name !== undefined) return name
    }
    throw new ServiceError('invalid_field', 'too many files have this name already; choose another one', {
      details: { field: 'name' },
    })
  }

  async function record(upload: NamedUpload, pending: PendingBlob): Promise<Asset> {
    const name = await chooseName(upload, pending.hash)
    const { asset } = await uploads.record({
      accountId: upload.accountId,
      hash: pending.hash,
      sizeBytes: pending.sizeBytes,
      contentType: readContentType(upload.contentType),
      filePath: pathOf(upload.folder, name),
      tags: [],
      expiresInSeconds: null,
      idempotencyKey: null,
    })
    return asset
  }

  return record
}

/** What an engine made in exactly this subfolder counts first; then whatever bears the name, the newest first. */
async function findNamed(
  { assets, clock }: Pick<NamedFilesDeps, 'assets' | 'clock'>,
  accountId: string,
  { folder, name, subfolder }: FileLocation,
): Promise<Asset | null> {
  const now = clock.now()
  const nested = subfolder === '' ? [] : [`${subfolder}/${name}`]
  const paths = [...nested, name].flatMap((one) => pathsOf(folder, one))
  const uploads = await assets.findNewestByPath(accountId, { filePaths: paths, origin: 'upload', now })
  const upload = paths.map((path) => uploads.find((one) => one.filePath === path)).find((one) => one !== undefined)
  if (folder === 'input') return upload ?? null
  const filePath = folder === 'temp' ? `temp/${name}` : name
  const exact = await assets.findOutputIn(accountId, { filePath, subfolder, now })
  if (exact !== null) return exact
  const [output] = await assets.findNewestByPath(accountId, { filePaths: [filePath], origin: 'output', now })
  return output ?? upload ?? null
}

function pathOf(folder: FileFolder, name: string): string {
  return folder === 'input' ? name : `${folder}/${name}`
}

/** An input may have been uploaded with its folder in the path; nothing else may stand for an output or a preview. */
function pathsOf(folder: FileFolder, name: string): readonly string[] {
  return folder === 'input' ? [name, `input/${name}`] : [`${folder}/${name}`]
}

/** ComfyUI's way: `name (1).png`, then `name (2).png`. */
function numberedName(name: string, number: number): string {
  if (number === 0) return name
  const dot = name.lastIndexOf('.')
  return dot <= 0 ? `${name} (${number})` : `${name.slice(0, dot)} (${number})${name.slice(dot)}`
}

function newestFirst(lists: readonly (readonly Asset[])[], limit: number): readonly Asset[] {
  const all = lists.flat().sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime())
  return all.slice(0, limit)
}

async function* toAsync(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* source
}
