/** The blob store on a bucket and a database of the test's own. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../../lib/clock.ts'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { diskFileOps, type FileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { createBucket, type PatienceOptions } from '../../../src/adapters/blobs/s3/bucket.ts'
import { readKeys, toKeySource } from '../../../src/adapters/blobs/s3/bucket-keys.ts'
import { openLocalFiles } from '../../../src/adapters/blobs/s3/local-files.ts'
import { createHedge } from '../../../src/adapters/blobs/s3/read-object.ts'
import { createS3Blobs } from '../../../src/adapters/blobs/s3/s3-blobs.ts'
import { type LaneOptions, openS3Client } from '../../../src/adapters/blobs/s3/s3-client.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { BlobIndex } from '../../../src/domain/assets/blob-index.ts'
import { createTestDatabase } from '../postgres/test-database.ts'

export interface BucketUnderTest {
  readonly endpoint: string
  readonly bucket: string
  readonly keys: string
  readonly prefix?: string
}

interface S3UnderTestOptions {
  readonly patience?: PatienceOptions
  readonly clock?: Clock
  readonly cacheBytes?: number
  readonly partMemoryBytes?: number
  readonly hedgeAfterMs?: number
  readonly silentMs?: number
  readonly answerMs?: number
  readonly lanes?: LaneOptions
  readonly disk?: FileOps
}

const blake3 = await openBlake3()
// Pauses are as short as they can be: what is tested is that a request is tried again, not how long that takes.
const QUICK: PatienceOptions = { firstPauseMs: 1, maxPauseMs: 2 }
const NEVER_MS = 2 ** 30

/** One process's store over an index that others share. */
export async function openBlobsOn(
  place: BucketUnderTest,
  index: BlobIndex,
  {
    patience = QUICK,
    clock = systemClock,
    cacheBytes = 2 ** 30,
    hedgeAfterMs = NEVER_MS,
    disk = diskFileOps,
    ...options
  }: S3UnderTestOptions = {},
) {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-s3-'))
  const address = { ...place, publicEndpoint: place.endpoint, region: 'us-east-1', isPathStyle: true }
  const { silentMs = 10_000, partMemoryBytes, answerMs, lanes } = options
  const bounds = { silentMs, ...(answerMs !== undefined && { answerMs }), ...(lanes !== undefined && { lanes }) }
  const client = openS3Client({ address, keys: toKeySource(readKeys(place.keys)), ...bounds })
  const bucket = createBucket(client, patience)
  const files = await openLocalFiles({
    directory,
    maxBytes: cacheBytes,
    users: { own: 'this', live: new Set(['this']) },
    files: disk,
  })
  const blobs = createS3Blobs({
    bucket,
    prefix: place.prefix ?? '',
    index,
    files,
    disk,
    blake3,
    clock,
    log: silentLog,
    hedge: createHedge({ afterMs: hedgeAfterMs }),
    ...(partMemoryBytes !== undefined && { partMemoryBytes }),
  })
  return {
    blobs,
    bucket,
    client,
    directory,
    hash: (bytes: Uint8Array) => blake3.hash(bytes),
    async [Symbol.asyncDispose]() {
      await files[Symbol.asyncDispose]()
      await client[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** An index in a database of its own. */
export async function openTestIndex() {
  await using opening = new AsyncDisposableStack()
  const database = opening.use(await createTestDatabase())
  const store = opening.use(await openPostgresStore({ url: database.url, migrates: false }))
  if (store.blobIndex === null) throw new Error('Postgres keeps an index')
  const open = opening.move()
  return { index: store.blobIndex, store, [Symbol.asyncDispose]: () => open.disposeAsync() }
}
