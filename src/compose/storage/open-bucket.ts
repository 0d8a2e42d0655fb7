/** Opens the bucket that the configuration names, and knows the object by which it is tied to its database. */

import type { Clock } from '../../../lib/clock.ts'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import type { Log } from '../../../lib/log.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { FolderUsers } from '../../adapters/blobs/folder-users.ts'
import type { FileOps } from '../../adapters/blobs/fs/file-ops.ts'
import { createAwsKeys } from '../../adapters/blobs/s3/aws-keys.ts'
import { type Bucket, createBucket } from '../../adapters/blobs/s3/bucket.ts'
import { createKeySource, type KeySource, readKeys, toKeySource } from '../../adapters/blobs/s3/bucket-keys.ts'
import { createObjectCollector } from '../../adapters/blobs/s3/collect-objects.ts'
import { openLocalFiles } from '../../adapters/blobs/s3/local-files.ts'
import { toSendable } from '../../adapters/blobs/s3/parts.ts'
import { createS3Blobs } from '../../adapters/blobs/s3/s3-blobs.ts'
import { openS3Client } from '../../adapters/blobs/s3/s3-client.ts'
import { hasS3Code } from '../../adapters/blobs/s3/s3-error.ts'
import { readKeysFile, type S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { BlobIndex } from '../../domain/assets/blob-index.ts'
import type { Blobs } from '../../domain/assets/blob-store.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { MetaStore } from '../../domain/store.ts'
import type { NamedGauge } from '../metrics/open-metrics.ts'
import type { BlobsPlace } from './bind-blobs.ts'

interface OpenedBucket extends AsyncDisposable {
  readonly bucket: Bucket
  readonly place: BlobsPlace
}

interface BucketDeps {
  readonly secrets: Pick<Secrets, 'blobsKeys'>
  readonly log: Log
}

export function openBucket(config: S3BlobsConfig, deps: BucketDeps): OpenedBucket {
  const client = openS3Client({ address: config, keys: openKeys(config, deps) })
  const bucket = createBucket(client)
  return { bucket, place: toPlace(bucket, config), [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() }
}

function openKeys({ keysFile }: S3BlobsConfig, { secrets: { blobsKeys }, log }: BucketDeps): KeySource {
  if (keysFile !== null) return createKeySource({ load: async () => readKeys(readKeysFile(keysFile).reveal()), log })
  if (blobsKeys !== null) return toKeySource(readKeys(blobsKeys.reveal()))
  return createKeySource({ load: createAwsKeys(log), log })
}

function toPlace(bucket: Bucket, { prefix, shown }: S3BlobsConfig): BlobsPlace {
  const key = `${prefix}id`
  return {
    shown,
    mending: (id) =>
      `Name the bucket that holds them; if they are lost for good, put an object ${key} with the text ${id} into it.`,
    readId: async () => (await bucket.read(key))?.toString('utf8').trim() ?? null,
    async writeId(id) {
      try {
        await bucket.put(key, toSendable(`${id}\n`), { mustBeNew: true })
      } catch (error) {
        // Another process was faster: whose id it is, is looked at next. Services without conditions write it plainly.
        if (hasS3Code(error, 'PreconditionFailed', 'ConditionalRequestConflict')) return
        if (!hasS3Code(error, 'NotImplemented')) throw error
        await bucket.put(key, toSendable(`${id}\n`))
      }
    },
  }
}

/** The blob store on a bucket, with what belongs to it: files kept for engines, the chores that remove objects, and a probe. */
interface BucketBlobs extends AsyncDisposable {
  readonly blobs: Blobs
  readonly place: BlobsPlace
  readonly chores: readonly Chore[]
  readonly gauges: readonly NamedGauge[]
  /** Whether the bucket answers; never rejects. */
  answers(): Promise<boolean>
}

interface BucketBlobsDeps {
  readonly secrets: Pick<Secrets, 'blobsKeys'>
  readonly index: BlobIndex
  readonly meta: Pick<MetaStore, 'readMeta' | 'changeMeta'>
  readonly users: FolderUsers
  /** The disk of this machine, for what does not fit into memory and for engines. */
  readonly disk: FileOps
  /** How long an object stays after nothing led to it any more. */
  readonly graceMs: number
  readonly onTransferred?: (bytes: number) => void
  readonly clock: Clock
  readonly log: Log
}

const MINUTE_MS = 60_000
const SWEPT_DAY = 'blobs_swept_day'

export async function openBucketBlobs(config: S3BlobsConfig, deps: BucketBlobsDeps): Promise<BucketBlobs> {
  const { index, meta, users, disk, clock, log } = deps
  await using opening = new AsyncDisposableStack()
  const { bucket, place } = opening.use(openBucket(config, deps))
  const { prefix, cacheDirectory, cacheBytes, isDirect } = config
  const files = opening.use(
    await openLocalFiles({ directory: cacheDirectory, maxBytes: cacheBytes, users, files: disk }),
  )
  const blake3 = await openBlake3()
  const { signDirect, directUploads, ...blobs } = createS3Blobs({
    ...{ bucket, prefix, index, files, disk, blake3, clock, log },
    ...(deps.onTransferred !== undefined && { onTransferred: deps.onTransferred }),
  })
  const marks = {
    read: () => meta.readMeta(SWEPT_DAY),
    async write(day: string) {
      // A leader that was replaced while it swept does not take back what its successor has done.
      await meta.changeMeta(SWEPT_DAY, (known) => (known !== null && known > day ? known : day))
    },
  }
  const collector = createObjectCollector({ bucket, prefix, index, clock, log, graceMs: deps.graceMs, marks })
  const open = opening.move()
  return {
    blobs: isDirect ? { ...blobs, ...(signDirect && { signDirect }), ...(directUploads && { directUploads }) } : blobs,
    place,
    chores: [
      { name: 'remove-objects', runs: 'once', everyMs: MINUTE_MS, run: (signal) => collector.removeGarbage(signal) },
      { name: 'sweep-objects', runs: 'once', everyMs: 60 * MINUTE_MS, run: (signal) => collector.sweepOrphans(signal) },
    ],
    gauges: [
      {
        name: 'atelier_storage_requests',
        help: 'Requests to the bucket since the start, every try counted.',
        read: () => bucket.stats().requests,
      },
      {
        name: 'atelier_storage_failures',
        help: 'Requests to the bucket that got no usable answer.',
        read: () => bucket.stats().failures,
      },
    ],
    answers: createProbe(place),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

const FRESH_MS = 5_000
const ANSWER_WITHIN_MS = 3_000

/** One small read, whose answer is reused for a moment: anybody may ask for readiness. */
function createProbe(place: BlobsPlace): () => Promise<boolean> {
  let known = { answers: true, at: Number.NEGATIVE_INFINITY }
  let asking: Promise<boolean> | null = null

  async function ask(): Promise<boolean> {
    const read = place.readId().then(
      () => true,
      () => false,
    )
    const answers = (await settlesWithin(read, ANSWER_WITHIN_MS)) && (await read)
    known = { answers, at: performance.now() }
    asking = null
    return answers
  }

  return async () => {
    if (performance.now() - known.at < FRESH_MS) return known.answers
    asking ??= ask()
    return asking
  }
}
