/** Opens the bucket that the configuration names, and knows the object by which it is tied to its database. */
import { type Bucket, createBucket } from '../../adapters/blobs/s3/bucket.ts'
import { toSendable } from '../../adapters/blobs/s3/parts.ts'
import { openS3Client } from '../../adapters/blobs/s3/s3-client.ts'
import { hasS3Code } from '../../adapters/blobs/s3/s3-error.ts'
import { readKeys } from '../../adapters/blobs/s3/sign-request.ts'
import type { S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import { ConfigError } from '../../config/config-error.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { BlobsPlace } from './bind-blobs.ts'

interface OpenedBucket extends AsyncDisposable {
  readonly bucket: Bucket
  readonly place: BlobsPlace
}

export function openBucket(config: S3BlobsConfig, { blobsKeys }: Pick<Secrets, 'blobsKeys'>): OpenedBucket {
  if (blobsKeys === null) {
    throw new ConfigError(
      'blobs names a bucket without its keys; set ATELIER_BLOBS_KEYS to id:secret, or give --blobs-keys-file',
    )
  }
  const client = openS3Client({ address: config, keys: readKeys(blobsKeys.reveal()) })
  const bucket = createBucket(client)
  return { bucket, place: toPlace(bucket, config), [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() }
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
