/** Opens the blob store that the configuration names, tied to its database before anything is removed, and the folders of models and of importable files, if any. */
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import type { Clock } from '../../../lib/clock.ts'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { inOneChunk } from '../../../lib/files/byte-streams.ts'
import type { Log } from '../../../lib/log.ts'
import type { FolderUsers } from '../../adapters/blobs/folder-users.ts'
import { diskFileOps, type FileOps } from '../../adapters/blobs/fs/file-ops.ts'
import { openFsBlobs } from '../../adapters/blobs/fs/fs-blobs.ts'
import { openHostFiles } from '../../adapters/blobs/fs/host-files.ts'
import { openModelFiles } from '../../adapters/blobs/fs/model-files.ts'
import { moveSmallBytes, openSmallBytes, type SmallBytes } from '../../adapters/store/sqlite/transfer/small-bytes.ts'
import type { AssetsConfig } from '../../config/blocks/assets-config.ts'
import type { BlobsConfig, FsBlobsConfig, S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import { ConfigError, quote } from '../../config/config-error.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { Blobs } from '../../domain/assets/blob-store.ts'
import type { HostFiles } from '../../domain/assets/create/asset-from-path.ts'
import type { ModelFiles } from '../../domain/assets/weights/model-placement.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { MetaStore, Store } from '../../domain/store.ts'
import type { NamedGauge } from '../metrics/open-metrics.ts'
import { bindBlobs, toFolderPlace } from './bind-blobs.ts'
import { createRoomProbe, type HasRoom, haveFree } from './can-write-probe.ts'
import { openBucketBlobs } from './open-bucket.ts'

export interface OpenedBlobs extends AsyncDisposable {
  readonly blobs: Blobs
  readonly modelFiles: ModelFiles | null
  readonly hostFiles: HostFiles | null
  /** Whether anything can be written to the blobs and beside them, to the folder of the database. */
  readonly hasRoom: HasRoom
  /** Whether a run that makes so many bytes finds room for them, and for what it writes aside; never rejects. */
  readonly hasRoomFor: (bytes: number) => Promise<boolean>
  readonly chores: readonly Chore[]
  readonly gauges: readonly NamedGauge[]
  /** Whether the storage answers; requests that need no bytes go on without it. */
  readonly answers: () => Promise<boolean>
}

export interface BlobOverrides {
  /** For tests: a disk that fails. */
  readonly files?: FileOps
}

interface BlobsDeps {
  readonly store: Pick<Store, 'blobIndex' | 'isExclusive' | keyof MetaStore>
  /** The folder of a SQLite database, in which earlier builds kept small outputs; null: there is none. */
  readonly dataDirectory: string | null
  readonly secrets: Pick<Secrets, 'blobsKeys'>
  /** Other processes use the folder too, and the database is elsewhere; null: this one is alone. */
  readonly users: FolderUsers | null
  readonly overrides: BlobOverrides
  readonly onTransferred: (bytes: number) => void
  readonly clock: Clock
  readonly log: Log
}

export async function openBlobs(config: BlobsConfig, assets: AssetsConfig, deps: BlobsDeps): Promise<OpenedBlobs> {
  return config.kind === 's3' ? openFromBucket(config, assets, deps) : openFromFiles(config, assets, deps)
}

async function openFromFiles(
  { directory }: FsBlobsConfig,
  { modelsDirectory, importDirectories }: AssetsConfig,
  { store, dataDirectory, users, overrides: { files = diskFileOps }, onTransferred, log }: BlobsDeps,
): Promise<OpenedBlobs> {
  const blake3 = await openBlake3()
  const fsBlobs = await openFsBlobs({ directory, blake3, log, files, users, onTransferred })
  const { temporaryDirectory } = fsBlobs
  const place = toFolderPlace(directory)
  await bindBlobs(store, place)
  if (dataDirectory !== null) await moveSmallBytes(dataDirectory, (...row) => keepSmall(fsBlobs, ...row), log)
  const small = dataDirectory === null ? null : openSmallBytes(dataDirectory, blake3)
  const blobs = small === null ? fsBlobs : withSmallBytes(fsBlobs, small)
  const directories = users !== null ? [temporaryDirectory] : [temporaryDirectory, dirname(directory)]
  const name = users === null ? 'room-probe' : `${users.own}.room-probe`
  const probe = { name, files, log, now: () => performance.now() }
  const canWrite = createRoomProbe({ ...probe, directories })
  return {
    blobs,
    modelFiles: modelsDirectory === null ? null : await openModelFiles({ modelsDirectory, blobs, blake3 }),
    hostFiles: await openImportFolders(importDirectories),
    hasRoom: canWrite,
    hasRoomFor: async (bytes) => (await haveFree([...directories, tmpdir()], bytes)) && canWrite(),
    chores: [],
    gauges: [],
    answers: async () => true,
    async [Symbol.asyncDispose]() {
      small?.[Symbol.dispose]()
    },
  }
}

/** False: they are not what their hash says, and are not kept. */
async function keepSmall(blobs: Blobs, hash: string, bytes: Uint8Array): Promise<boolean> {
  const pending = await blobs.receive(inOneChunk(bytes), { maxBytes: bytes.length })
  const isWhole = pending.hash === hash
  await (isWhole ? pending.keep() : pending.discard())
  return isWhole
}

/** Reads from the database what could not be made a file when the service started. */
function withSmallBytes(blobs: Blobs, small: SmallBytes): Blobs {
  return {
    ...blobs,
    async stat(hash) {
      const found = await blobs.stat(hash)
      const bytes = found === null ? small.read(hash) : null
      return bytes === null ? found : { sizeBytes: bytes.length }
    },
    async open(hash, range) {
      const bytes = (await blobs.stat(hash)) === null ? small.read(hash) : null
      if (bytes === null) return blobs.open(hash, range)
      const { start, end } = range ?? { start: 0, end: bytes.length - 1 }
      return Readable.from(Buffer.from(bytes.subarray(start, end + 1)))
    },
    localPath: (hash) => (small.read(hash) === null ? blobs.localPath(hash) : null),
  }
}

/** Models are placed in folders of one machine, and a bucket is for many: the configuration refuses the two together. */
async function openFromBucket(
  config: S3BlobsConfig,
  { importDirectories, blobGraceMs }: AssetsConfig,
  { store, secrets, users, overrides: { files: disk = diskFileOps }, onTransferred, clock, log }: BlobsDeps,
): Promise<OpenedBlobs> {
  const { blobIndex: index } = store
  if (index === null || users === null) throw new Error('a bucket needs a database that several processes share')
  const options = { secrets, index, meta: store, users, disk, graceMs: blobGraceMs, onTransferred, clock, log }
  const { place, ...opened } = await openBucketBlobs(config, options)
  try {
    await bindBlobs(store, place)
  } catch (error) {
    await opened[Symbol.asyncDispose]()
    throw error
  }
  return {
    ...opened,
    modelFiles: null,
    hostFiles: await openImportFolders(importDirectories),
    // A bucket has no room of its own to look at; what it refuses as full is refused as full.
    hasRoom: async () => true,
    hasRoomFor: (bytes) => haveFree([tmpdir()], bytes),
  }
}

async function openImportFolders(folders: readonly string[]): Promise<HostFiles | null> {
  if (folders.length === 0) return null
  try {
    return await openHostFiles(folders)
  } catch (error) {
    const { path = '', code = '' } = error as NodeJS.ErrnoException
    throw new ConfigError(
      `importDirs names ${quote(path)}, which cannot be opened (${code}); create it or correct the path`,
    )
  }
}
