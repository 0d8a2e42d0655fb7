/**
 * Implements `atelier verify`: checks the database, and every stored file against its hash. It may run while the service runs.
 * A file that appears or disappears meanwhile is no fault: what looks missing is checked once more at the end, against the
 * records of that moment.
 */
import { existsSync } from 'node:fs'
import { mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { diskFileOps } from '../../adapters/blobs/fs/file-ops.ts'
import { DAMAGED_FOLDER } from '../../adapters/blobs/fs/fs-blobs.ts'
import { openShards, type Shards } from '../../adapters/blobs/fs/shards.ts'
import { storeFiles } from '../../adapters/store/sqlite/database/data-directory.ts'
import { verifyDatabase } from '../../adapters/store/sqlite/database/verify-database.ts'
import type { Config, StoreConfig } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { hashFile } from './hash-file.ts'
import { toConnection } from './postgres-connection.ts'

export interface DataFault {
  readonly kind: 'database' | 'damaged' | 'missing'
  /** The message of the database, or the hash of the file. */
  readonly what: string
}

interface VerifiedData {
  readonly files: number
  readonly bytes: number
  readonly faults: readonly DataFault[]
}

interface VerifyOptions {
  readonly secrets: Pick<Secrets, 'databasePassword'>
  /** Moves damaged files away, so that uploading the same bytes again stores them anew. */
  readonly setAside: boolean
  readonly onFile?: (files: number) => void
}

/** Whether there is a database to compare the files with. */
export function hasData({ store }: Pick<Config, 'store'>): boolean {
  return store.kind === 'postgres' || existsSync(storeFiles(store.directory).database)
}

export async function verifyData(
  { store, blobs }: Pick<Config, 'store' | 'blobs'>,
  { secrets, setAside, onFile = () => {} }: VerifyOptions,
): Promise<VerifiedData> {
  const readRecords = () => verifyRecords(store, secrets)
  const { problems, blobs: recorded } = await readRecords()
  const faults: DataFault[] = problems.map((what) => ({ kind: 'database', what }))
  const shards = openShards(blobs.directory, diskFileOps)
  const blake3 = await openBlake3()
  const missing = new Set(recorded.keys())
  let files = 0
  let bytes = 0
  for await (const hashes of shards.list()) {
    for (const hash of hashes) {
      const read = await hashFile(shards.pathOf(hash), blake3)
      if (read === null) continue
      missing.delete(hash)
      files += 1
      bytes += read.bytes
      onFile(files)
      if (read.hash === hash) continue
      faults.push({ kind: 'damaged', what: hash })
      if (setAside) await moveAside(shards, blobs.directory, hash)
    }
  }
  faults.push(...(await stillMissing(missing, shards, readRecords)))
  return { files, bytes, faults }
}

async function moveAside(shards: Shards, directory: string, hash: string): Promise<void> {
  const folder = join(directory, DAMAGED_FOLDER)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await rename(shards.pathOf(hash), join(folder, hash))
}

type VerifiedRecords = ReturnType<typeof verifyDatabase>

async function verifyRecords(store: StoreConfig, secrets: VerifyOptions['secrets']): Promise<VerifiedRecords> {
  if (store.kind === 'sqlite') return verifyDatabase(store.directory)
  const postgres = await import('../../adapters/store/postgres/database/verify-database.ts')
  return postgres.verifyDatabase(toConnection(store, secrets.databasePassword))
}

async function stillMissing(
  missing: ReadonlySet<string>,
  shards: Shards,
  readRecords: () => Promise<VerifiedRecords>,
): Promise<DataFault[]> {
  if (missing.size === 0) return []
  const { blobs: recorded } = await readRecords()
  const faults: DataFault[] = []
  for (const hash of missing) {
    if (!recorded.has(hash)) continue
    const isThere = await stat(shards.pathOf(hash)).then(
      () => true,
      () => false,
    )
    if (!isThere) faults.push({ kind: 'missing', what: hash })
  }
  return faults
}
