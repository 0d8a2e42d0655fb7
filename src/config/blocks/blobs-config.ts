/** Where bytes are kept: in files below the data folder, or in a bucket with its keys. */
import path from 'node:path'
import { ConfigError } from '../config-error.ts'
import { type BucketAddress, readBucketKeys } from '../readers/read-storage.ts'
import { readSecretFile, type Secret } from '../secrets.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type BlobsConfig = FsBlobsConfig | S3BlobsConfig

export interface FsBlobsConfig {
  readonly kind: 'fs'
  readonly directory: string
}

export interface S3BlobsConfig extends Omit<BucketAddress, 'keys'> {
  readonly kind: 's3'
  /** For files that a process keeps for a while, absolute. */
  readonly cacheDirectory: string
  readonly cacheBytes: number
  /** Whether clients are sent to the bucket for what they download. */
  readonly isDirect: boolean
  /** Where keys are read again when the storage no longer takes those from the start, absolute; null: nowhere. */
  readonly keysFile: string | null
}

export function toBlobsConfig(values: SettingValues, dataDirectory: string, toAbsolute: ToAbsolute): BlobsConfig {
  const { blobs, blobCache, content } = values
  if (blobs === null) return { kind: 'fs', directory: path.join(dataDirectory, 'blobs') }
  const { keys, ...address } = blobs
  return {
    kind: 's3',
    ...address,
    cacheDirectory: path.join(dataDirectory, 'blob-cache'),
    cacheBytes: blobCache,
    isDirect: content === 'direct',
    keysFile: keys === null ? null : toAbsolute('blobs', keys),
  }
}

/** null: they come from where the process runs. */
export function toBlobsKeys({ blobs, blobsKeys }: SettingValues, toAbsolute: ToAbsolute): Secret<string> | null {
  const file = blobs?.keys ?? null
  return file === null ? blobsKeys : readKeysFile(toAbsolute('blobs', file))
}

export function readKeysFile(path: string): Secret<string> {
  const keys = readSecretFile('blobs', path)
  try {
    return readBucketKeys(keys.reveal())
  } catch (error) {
    throw new ConfigError(`blobs names a file whose first line ${(error as Error).message}`)
  }
}
