/**
 * Implements `atelier verify`: checks the database, and every stored file or object against its hash. It may run while the service runs.
 * A file that appears or disappears meanwhile is no fault: what looks missing is checked once more at the end, against the
 * records of that moment.
 */
import { existsSync } from 'node:fs'
import { storeFiles } from '../../adapters/store/sqlite/database/data-directory.ts'
import { isDamage } from '../../adapters/store/sqlite/database/sqlite-error.ts'
import { verifyDatabase } from '../../adapters/store/sqlite/database/verify-database.ts'
import type { StoreConfig } from '../../config/blocks/store-config.ts'
import type { Config } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { toConnection } from './open-store.ts'
import { openStoredBytes, type StoredBytes } from './stored-bytes.ts'

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
  readonly secrets: Pick<Secrets, 'databasePassword' | 'blobsKeys'>
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
  await using stored = await openStoredBytes(blobs, { store, secrets })
  const missing = new Set(recorded.keys())
  let files = 0
  let bytes = 0
  const verifyAll = async () => {
    for await (const hashes of stored.list()) {
      for (const hash of hashes) {
        const read = await stored.measure(hash)
        if (read === null) continue
        missing.delete(hash)
        files += 1
        bytes += read.bytes
        onFile(files)
        if (read.hash === hash) continue
        faults.push({ kind: 'damaged', what: hash })
        if (setAside) await stored.setAside(hash)
      }
    }
  }
  await verifyAll().catch((error: unknown) => {
    if (!isDamage(error)) throw error
    faults.push({ kind: 'database', what: (error as Error).message })
  })
  faults.push(...(await stillMissing(missing, stored, readRecords)))
  return { files, bytes, faults }
}

type VerifiedRecords = ReturnType<typeof verifyDatabase>

async function verifyRecords(store: StoreConfig, secrets: VerifyOptions['secrets']): Promise<VerifiedRecords> {
  if (store.kind === 'sqlite') return verifyDatabase(store.directory)
  const postgres = await import('../../adapters/store/postgres/database/verify-database.ts')
  return postgres.verifyDatabase(toConnection(store, secrets.databasePassword))
}

async function stillMissing(
  missing: ReadonlySet<string>,
  stored: StoredBytes,
  readRecords: () => Promise<VerifiedRecords>,
): Promise<DataFault[]> {
  if (missing.size === 0) return []
  const { blobs: recorded } = await readRecords()
  const faults: DataFault[] = []
  for (const hash of missing) {
    if (!recorded.has(hash)) continue
    const isThere = (await stored.measure(hash)) !== null
    if (!isThere) faults.push({ kind: 'missing', what: hash })
  }
  return faults
}
