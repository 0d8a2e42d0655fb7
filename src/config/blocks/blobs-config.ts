/** Where bytes are kept: in files below the data folder, or in a bucket with its keys. */
import path from 'node:path'
import { ConfigError } from '../config-error.ts'
import { type BucketAddress, readBucketKeys } from '../readers/read-bucket.ts'
import { readSecretFile, type Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type BlobsConfig = FsBlobsConfig | S3BlobsConfig

export interface FsBlobsConfig {
  readonly kind: 'fs'
  readonly directory: string
}

export interface S3BlobsConfig extends BucketAddress {
  readonly kind: 's3'
  /** For files that a process keeps for a while, absolute. */
  readonly cacheDirectory: string
  readonly cacheBytes: number
  /** Whether clients are sent to the bucket for what they download. */
  readonly isDirect: boolean
}

export function toBlobsConfig({ blobs, blobCache, content }: SettingValues, dataDirectory: string): BlobsConfig {
  if (blobs === null) return { kind: 'fs', directory: path.join(dataDirectory, 'blobs') }
  return {
    kind: 's3',
    ...blobs,
    cacheDirectory: path.join(dataDirectory, 'blob-cache'),
    cacheBytes: blobCache,
    isDirect: content === 'direct',
  }
}

export function toBlobsKeys(
  { blobsKeys, blobsKeysFile: file }: SettingValues,
  toAbsolute: ToAbsolute,
): Secret<string> | null {
  if (file === null) return blobsKeys
  const name = 'blobsKeysFile'
  const keys = readSecretFile(name, toAbsolute(name, file))
  try {
    return readBucketKeys(keys.reveal())
  } catch (error) {
    throw new ConfigError(`${name} names a file whose first line ${(error as Error).message}`)
  }
}
