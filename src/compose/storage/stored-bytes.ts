/**
 * The bytes of a service as commands see them, in a folder or in a bucket: to be listed, read whole and compared, copied from or to,
 * and tied to a database.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../../lib/clock.ts'
import { type Blake3, openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { diskFileOps, hasCode, openShards } from '../../adapters/blobs/fs/file-ops.ts'
import { DAMAGED_FOLDER, openFsBlobs } from '../../adapters/blobs/fs/fs-blobs.ts'
import { openLocalFiles } from '../../adapters/blobs/s3/local-files.ts'
import { createS3Blobs } from '../../adapters/blobs/s3/s3-blobs.ts'
import { isNotFound } from '../../adapters/blobs/s3/s3-error.ts'
import { openSmallBytes } from '../../adapters/store/sqlite/transfer/small-bytes.ts'
import type { BlobsConfig, S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import type { PostgresConfig, StoreConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import { ask, type BlobsPlace, toFolderPlace } from './bind-blobs.ts'
import { openBucket } from './open-bucket.ts'
import { toConnection } from './open-store.ts'

export interface StoredBytes extends AsyncDisposable {
  readonly place: BlobsPlace
  list(): AsyncIterable<readonly string[]>
  /** null when they are not there. */
  sizeOf(hash: string): Promise<number | null>
  /** What lies there, read to its end; null when nothing does. */
  measure(hash: string): Promise<{ readonly hash: string; readonly bytes: number } | null>
  /** Not compared with their hash. */
  read(hash: string): AsyncIterable<Uint8Array>
  /** Opens what is needed to store bytes here. */
  openForWriting(): Promise<Pick<BlobStore, 'receive'>>
  /** Makes the place, where it has to be made. */
  prepare(): Promise<void>
  /** Takes away what there is of bytes that are damaged or missing, so that sending them again stores them anew. */
  setAside(hash: string): Promise<void>
}

type BytesSecrets = Pick<Secrets, 'databasePassword' | 'blobsKeys'>

export async function openStoredBytes(
  config: BlobsConfig,
  { store, secrets }: { readonly store: StoreConfig; readonly secrets: BytesSecrets },
): Promise<StoredBytes> {
  const blake3 = await openBlake3()
  if (config.kind === 'fs') return openFolderBytes(config.directory, { data: dataFolderOf(store), blake3 })
  if (store.kind !== 'postgres') throw new Error('a bucket needs a database')
  return openBucketBytes(config, { store, secrets, blake3 })
}

function dataFolderOf(store: StoreConfig): string | null {
  return store.kind === 'sqlite' ? store.directory : null
}

interface FolderBytesOptions {
  /** The folder of a SQLite database, in which earlier builds kept small outputs; null: there is none. */
  readonly data: string | null
  readonly blake3: Blake3
}

export async function openFolderBytes(directory: string, { data, blake3 }: FolderBytesOptions): Promise<StoredBytes> {
  let opened: ReturnType<typeof openFsBlobs> | null = null
  const openForWriting = () => {
    opened ??= openFsBlobs({ directory, blake3, log: silentLog })
    return opened
  }
  const small = data === null ? null : openSmallBytes(data, blake3)
  const shards = openShards(directory, diskFileOps)
  const sizeOf = (hash: string) => diskFileOps.sizeOf(shards.pathOf(hash))
  const measureFile = (hash: string) => hashFile(shards.pathOf(hash), blake3)
  const measureSmall = (hash: string) => {
    const bytes = small?.read(hash) ?? null
    return bytes === null ? null : { hash, bytes: bytes.length }
  }
  return {
    place: toFolderPlace(directory),
    async *list() {
      yield* shards.list()
      for (const hashes of small?.list() ?? []) {
        const sizes = await Promise.all(hashes.map(sizeOf))
        yield hashes.filter((_, index) => sizes[index] === null)
      }
    },
    sizeOf: async (hash) => (await sizeOf(hash)) ?? measureSmall(hash)?.bytes ?? null,
    // A service that starts meanwhile makes the file before it removes the row.
    measure: async (hash) => (await measureFile(hash)) ?? measureSmall(hash) ?? (await measureFile(hash)),
    async *read(hash) {
      const bytes = (await sizeOf(hash)) === null ? (small?.read(hash) ?? null) : null
      if (bytes === null) yield* createReadStream(shards.pathOf(hash), { highWaterMark: 1_048_576 })
      else yield bytes
    },
    openForWriting,
    async prepare() {
      await mkdir(directory, { recursive: true, mode: 0o700 })
    },
    async setAside(hash) {
      const folder = join(directory, DAMAGED_FOLDER)
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await rename(shards.pathOf(hash), join(folder, hash)).catch((error: unknown) => {
        if (!hasCode(error, 'ENOENT')) throw error
      })
    },
    async [Symbol.asyncDispose]() {
      small?.[Symbol.dispose]()
    },
  }
}

interface BucketBytesDeps {
  readonly store: PostgresConfig
  readonly secrets: BytesSecrets
  readonly blake3: Blake3
}

async function openBucketBytes(config: S3BlobsConfig, deps: BucketBytesDeps): Promise<StoredBytes> {
  const { store: database, secrets, blake3 } = deps
  const { openPostgresStore } = await import('../../adapters/store/postgres/open-postgres-store.ts')
  await using opening = new AsyncDisposableStack()
  const connection = toConnection(database, secrets.databasePassword)
  const store = opening.use(await openPostgresStore({ ...connection, migrates: false }))
  const { blobIndex: index } = store
  if (index === null) throw new Error('a database keeps an index')
  const { bucket, place } = opening.use(openBucket(config, { secrets, log: silentLog }))
  await ask(place, () => place.readId())
  const readRaw = async (hash: string) => {
    const object = await index.find(hash)
    return object === null ? null : bucket.get(object.objectKey, null)
  }
  const open = opening.move()
  return {
    place,
    list: () => index.list(),
    async sizeOf(hash) {
      const object = await index.find(hash)
      // The index may know of another bucket, from which the bytes were moved away.
      return object === null ? null : bucket.sizeOf(object.objectKey)
    },
    async measure(hash) {
      try {
        return await bucket.patience.run(async () => {
          const stream = await readRaw(hash)
          if (stream === null) return null
          const hasher = blake3.createHasher()
          let bytes = 0
          for await (const chunk of stream.body as AsyncIterable<Buffer>) {
            hasher.update(chunk)
            bytes += chunk.length
          }
          return { hash: hasher.digest(), bytes }
        })
      } catch (error) {
        if (isNotFound(error)) return null
        throw error
      }
    },
    async *read(hash) {
      const stream = await bucket.patience.run(() => readRaw(hash))
      if (stream !== null) yield* stream.body as AsyncIterable<Uint8Array>
    },
    async openForWriting() {
      const own = `command-${randomUUID()}`
      // What running services keep there is theirs.
      const users = { own, live: { has: () => true } }
      const disk = diskFileOps
      const files = open.use(
        await openLocalFiles({ directory: config.cacheDirectory, maxBytes: 0, users, files: disk }),
      )
      const { prefix } = config
      return createS3Blobs({ bucket, prefix, index, files, disk, blake3, clock: systemClock, log: silentLog })
    },
    async prepare() {},
    setAside: (hash) => index.remove(hash, { isKnown: async () => false, now: systemClock.now() }),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

// Reads a stored file whole, to compare it with the hash in its name.

/** null: there is no such file (any more). */
async function hashFile(path: string, blake3: Blake3): Promise<{ hash: string; bytes: number } | null> {
  const hasher = blake3.createHasher()
  let bytes = 0
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1_048_576 })) {
      hasher.update(chunk as Buffer)
      bytes += (chunk as Buffer).length
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
  return { hash: hasher.digest(), bytes }
}
