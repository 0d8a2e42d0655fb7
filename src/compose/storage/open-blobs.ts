/** Opens the blob store that the configuration names, and the folders of models and of importable files, if any. */
import { dirname } from 'node:path'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import type { Log } from '../../../lib/log.ts'
import { diskFileOps, type FileOps } from '../../adapters/blobs/fs/file-ops.ts'
import { openFsBlobs } from '../../adapters/blobs/fs/fs-blobs.ts'
import { openHostFiles } from '../../adapters/blobs/fs/host-files.ts'
import type { FolderUsers } from '../../adapters/blobs/fs/left-overs.ts'
import { openModelFiles } from '../../adapters/blobs/fs/model-files.ts'
import type { AssetsConfig, BlobsConfig } from '../../config/config.ts'
import { ConfigError, quote } from '../../config/config-error.ts'
import type { Blobs } from '../../domain/assets/blob-store.ts'
import type { HostFiles } from '../../domain/assets/create/asset-from-path.ts'
import type { ModelFiles } from '../../domain/assets/weights/model-placement.ts'
import { createRoomProbe, type HasRoom } from './can-write-probe.ts'

export interface OpenedBlobs {
  readonly blobs: Blobs
  readonly modelFiles: ModelFiles | null
  readonly hostFiles: HostFiles | null
  /** Whether anything can be written to the blobs and beside them, to the folder of the database. */
  readonly hasRoom: HasRoom
}

export interface BlobOverrides {
  /** For tests: a disk that fails. */
  readonly files?: FileOps
}

interface BlobsDeps {
  /** Other processes use the folder too, and the database is elsewhere; null: this one is alone. */
  readonly users: FolderUsers | null
  readonly overrides: BlobOverrides
  readonly onTransferred: (bytes: number) => void
  readonly log: Log
}

export async function openBlobs(
  { directory }: BlobsConfig,
  { modelsDirectory, importDirectories }: AssetsConfig,
  { users, overrides: { files = diskFileOps }, onTransferred, log }: BlobsDeps,
): Promise<OpenedBlobs> {
  const blake3 = await openBlake3()
  const blobs = await openFsBlobs({ directory, blake3, log, files, users, onTransferred })
  const modelFiles = modelsDirectory === null ? null : await openModelFiles({ modelsDirectory, blobs, blake3 })
  const hostFiles = importDirectories.length === 0 ? null : await openImportFolders(importDirectories)
  const directories = users !== null ? [blobs.temporaryDirectory] : [blobs.temporaryDirectory, dirname(directory)]
  const name = users === null ? 'room-probe' : `${users.own}.room-probe`
  const hasRoom = createRoomProbe({ directories, name, files, log, now: () => performance.now() })
  return { blobs, modelFiles, hostFiles, hasRoom }
}

async function openImportFolders(folders: readonly string[]): Promise<HostFiles> {
  try {
    return await openHostFiles(folders)
  } catch (error) {
    const { path = '', code = '' } = error as NodeJS.ErrnoException
    throw new ConfigError(
      `importDirs names ${quote(path)}, which cannot be opened (${code}); create it or correct the path`,
    )
  }
}
