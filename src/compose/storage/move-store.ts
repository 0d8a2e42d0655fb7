/**
 * Implements `atelier move`: brings everything that a service keeps from a data folder to a Postgres database, or back. Bytes first,
 * then records, then the keys that sign addresses; each part goes on where a killed move ended. The store that was left says so to
 * whoever starts a service on it.
 */
import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import { silentLog } from '../../../lib/log.ts'
import type { Sealer } from '../../../lib/sealer.ts'
import { diskFileOps } from '../../adapters/blobs/fs/file-ops.ts'
import { openFsBlobs } from '../../adapters/blobs/fs/fs-blobs.ts'
import { openShards } from '../../adapters/blobs/fs/shards.ts'
import { openSqliteRecords } from '../../adapters/store/sqlite/transfer/sqlite-records.ts'
import type { PostgresConfig } from '../../config/config.ts'
import type { Secrets } from '../../config/secrets.ts'
import {
  type MovedKind,
  MoveError,
  moveRecords,
  type RecordReader,
  type RecordSource,
  type RecordTarget,
} from '../../domain/transfer/move-records.ts'
import { keyOf, RECORD_KINDS, type RecordRow } from '../../domain/transfer/record-kinds.ts'
import { hashFile } from './hash-file.ts'
import { sealFolderKeys, unsealIntoFolder } from './open-signing-keys.ts'
import { toConnection } from './postgres-connection.ts'

export { MoveError }

interface MovePlan {
  readonly direction: 'to_database' | 'to_folder'
  /** The data folder with, or for, an embedded store. */
  readonly folder: string
  readonly database: PostgresConfig
  /** The data folder of the processes on the database, which holds their bytes. */
  readonly databaseFolder: string
  readonly secrets: Pick<Secrets, 'databasePassword'>
  /** Under the secret key that both services use. */
  readonly sealer: Sealer
}

interface Moved {
  readonly kinds: readonly MovedKind[]
  readonly files: number
  readonly bytes: number
  /** Records whose bytes the source does not have. */
  readonly missing: number
}

interface MoveHooks {
  readonly now: Date
  onBatch?(kind: string, rows: number): void
}

/** Throws MoveError or StoreOpenError, with a message for the operator. */
export async function moveStore(plan: MovePlan, { now, onBatch }: MoveHooks): Promise<Moved> {
  const { direction, folder, databaseFolder, database } = plan
  const isInward = direction === 'to_database'
  const [fromFolder, toFolder] = isInward ? [folder, databaseFolder] : [databaseFolder, folder]
  using local = openSqliteRecords(folder, now)
  const { openPostgresRecords } = await import('../../adapters/store/postgres/transfer/postgres-records.ts')
  await using remote = await openPostgresRecords(toConnection(database, plan.secrets.databasePassword), now)
  const [source, target]: [RecordSource, RecordTarget] = isInward ? [local, remote] : [remote, local]
  const { hashes, bytes } = await moveBytes(join(fromFolder, 'blobs'), join(toFolder, 'blobs'))
  const kinds = await moveRecords(source, target, {
    now,
    movedTo: isInward ? database.shown : folder,
    onBatch,
    async beforeOpen() {
      await moveSigningKeys(plan, source, target)
      await bindBytes(target, join(toFolder, 'blobs'))
    },
  })
  return { kinds, files: hashes.size, bytes, missing: await countMissing(target, hashes) }
}

/** Every file is read whole and compared with its name. */
async function moveBytes(from: string, to: string): Promise<{ hashes: Set<string>; bytes: number }> {
  const blake3 = await openBlake3()
  const stored = from === to ? null : await openFsBlobs({ directory: to, blake3, log: silentLog })
  const shards = openShards(from, diskFileOps)
  const found = new Set<string>()
  let bytes = 0
  for await (const hashes of shards.list()) {
    for (const hash of hashes) {
      const known = (await stored?.stat(hash)) ?? null
      const read = known ?? (await readOrCopy(shards.pathOf(hash), hash, { blake3, stored }))
      found.add(hash)
      bytes += read.sizeBytes
    }
  }
  return { hashes: found, bytes }
}

const PAGE_ROWS = 1000

async function countMissing(records: RecordReader, hashes: ReadonlySet<string>): Promise<number> {
  let missing = 0
  for (const kind of RECORD_KINDS.filter(({ name }) => name === 'asset' || name === 'output')) {
    const at = kind.columns.indexOf('hash')
    let after: RecordRow | null = null
    do {
      const rows: readonly RecordRow[] = await records.read(kind, after, PAGE_ROWS)
      missing += rows.filter((row) => !hashes.has(String(row[at]))).length
      const last = rows.at(-1)
      after = last === undefined ? null : keyOf(kind, last)
    } while (after !== null)
  }
  return missing
}

interface CopyDeps {
  readonly blake3: Awaited<ReturnType<typeof openBlake3>>
  /** null: the bytes stay where they are and are only checked. */
  readonly stored: Awaited<ReturnType<typeof openFsBlobs>> | null
}

async function readOrCopy(path: string, hash: string, { blake3, stored }: CopyDeps): Promise<{ sizeBytes: number }> {
  if (stored === null) {
    const read = await hashFile(path, blake3)
    if (read?.hash !== hash) throw damaged(hash)
    return { sizeBytes: read.bytes }
  }
  const pending = await stored.receive(createReadStream(path, { highWaterMark: 1_048_576 }), {
    maxBytes: Number.POSITIVE_INFINITY,
  })
  if (pending.hash !== hash) {
    await pending.discard()
    throw damaged(hash)
  }
  await pending.keep()
  return { sizeBytes: pending.sizeBytes }
}

function damaged(hash: string): MoveError {
  return new MoveError(`the stored bytes ${hash} are damaged; run \`atelier verify --set-aside\` on the source first`)
}

async function moveSigningKeys(
  { direction, folder, sealer }: MovePlan,
  source: RecordReader,
  target: RecordTarget,
): Promise<void> {
  if (direction === 'to_database') {
    const sealed = await sealFolderKeys(folder, sealer)
    if (sealed !== null) await target.writeOwn('signing_keys', sealed)
    return
  }
  const stored = await source.readOwn('signing_keys')
  if (stored === null || (await unsealIntoFolder(stored, folder, sealer))) return
  throw new MoveError(
    'the secret key does not open what the database holds; set ATELIER_SECRET_KEY to the one of its service',
  )
}

/** The id that ties the bytes to their records moved with the records. */
async function bindBytes(target: RecordReader, directory: string): Promise<void> {
  const id = await target.readOwn('blobs_id')
  if (id === null) return
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeFileWhole(join(directory, 'id'), `${id}\n`, { mode: 0o600, isDurable: true })
}
