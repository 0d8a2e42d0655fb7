/** Opens the bucket that the configuration names, and knows the object by which it is tied to its database. */
import type { Log } from '../../../lib/log.ts'
import { createAwsKeys } from '../../adapters/blobs/s3/aws-keys.ts'
import { type Bucket, createBucket } from '../../adapters/blobs/s3/bucket.ts'
import { createKeySource, type KeySource, readKeys, toKeySource } from '../../adapters/blobs/s3/bucket-keys.ts'
import { toSendable } from '../../adapters/blobs/s3/parts.ts'
import { openS3Client } from '../../adapters/blobs/s3/s3-client.ts'
import { hasS3Code } from '../../adapters/blobs/s3/s3-error.ts'
import { readKeysFile, type S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import type { Secrets } from '../../config/secrets.ts'
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
