/** Where bytes lie: the blob store that the configuration names, and the models folder when there is one. */
import { type FsBlobs, openFsBlobs } from '../adapters/blobs/fs.ts'
import { openModelFiles } from '../adapters/blobs/model-files.ts'
import type { AssetsConfig, BlobsConfig } from '../config/config.ts'
import type { ModelFiles } from '../domain/assets/model-placement.ts'
import { openBlake3 } from '../lib/blake3.ts'
import type { Log } from '../lib/log.ts'

export interface Blobs {
  readonly blobs: FsBlobs
  readonly modelFiles: ModelFiles | null
}

export async function openBlobs(config: BlobsConfig, { modelsDirectory }: AssetsConfig, log: Log): Promise<Blobs> {
  const blake3 = await openBlake3()
  const blobs = await openFsBlobs({ directory: config.directory, blake3, log })
  const modelFiles = modelsDirectory === null ? null : await openModelFiles({ modelsDirectory, blobs, blake3 })
  return { blobs, modelFiles }
}
