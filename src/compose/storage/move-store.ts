/**
 * Implements `atelier move`: brings everything that a service keeps from a data folder to a Postgres database, or back. Bytes first,
 * then records, then the keys that sign addresses; each part goes on where a killed move ended. The store that was left says so to
 * whoever starts a service on it.
 */
import { join } from 'node:path'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import type { Sealer } from '../../../lib/sealer.ts'
import { openSqliteRecords } from '../../adapters/store/sqlite/transfer/sqlite-records.ts'
import type { BlobsConfig } from '../../config/blocks/blobs-config.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import type { BlobStore } from '../../domain/assets/blob-store.ts'
import {
  type MovedKind,
  MoveError,
  moveRecords,
  type RecordReader,
  type RecordSource,
  type RecordTarget,
} from '../../domain/transfer/move-records.ts'
import { keyOf, type RecordRow } from '../../domain/transfer/record-kinds.ts'
import { sealFolderKeys, unsealIntoFolder } from './open-signing-keys.ts'
import { toConnection } from './open-store.ts'
import { openFolderBytes, openStoredBytes, type StoredBytes } from './stored-bytes.ts'

export { MoveError }

interface MovePlan {
  readonly direction: 'to_database' | 'to_folder'
  /** The data folder with, or for, an embedded store. */
  readonly folder: string
  readonly database: PostgresConfig
  /** Where the processes on the database keep their bytes. */
  readonly databaseBlobs: BlobsConfig
  readonly secrets: Pick<Secrets, 'databasePassword' | 'blobsKeys'>
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
  const { direction, folder, databaseBlobs, database, secrets } = plan
  const isInward = direction === 'to_database'
  using local = openSqliteRecords(folder, now)
  const { openPostgresRecords } = await import('../../adapters/store/postgres/transfer/postgres-records.ts')
  await using remote = await openPostgresRecords(toConnection(database, secrets.databasePassword), now)
  const [source, target]: [RecordSource, RecordTarget] = isInward ? [local, remote] : [remote, local]
  await using own = await openFolderBytes(join(folder, 'blobs'), { data: folder, blake3: await openBlake3() })
  await using theirs = await openStoredBytes(databaseBlobs, { store: database, secrets })
  const [from, to] = isInward ? [own, theirs] : [theirs, own]
  await mustBeFree(to, await source.readOwn(BLOBS_ID))
  const { hashes, bytes } = await moveBytes(from, to)
  const kinds = await moveRecords(source, target, {
    now,
    movedTo: isInward ? database.shown : folder,
    onBatch,
    async beforeOpen() {
      await moveSigningKeys(plan, source, target)
      // The id that ties the bytes to their records moved with the records.
      await bindBytes(to, await target.readOwn(BLOBS_ID))
    },
  })
  return { kinds, files: hashes.size, bytes, missing: await countMissing(target, hashes) }
}

interface BytesPlan {
  readonly from: BlobsConfig
  readonly to: BlobsConfig
  readonly database: PostgresConfig
  readonly secrets: Pick<Secrets, 'databasePassword' | 'blobsKeys'>
}

/** Only the bytes, of a service that stays on its database. */
export async function moveStoredBytes(plan: BytesPlan, now: Date): Promise<Pick<Moved, 'files' | 'bytes' | 'missing'>> {
  const { database, secrets } = plan
  const { openPostgresRecords } = await import('../../adapters/store/postgres/transfer/postgres-records.ts')
  await using records = await openPostgresRecords(toConnection(database, secrets.databasePassword), now)
  await using from = await openStoredBytes(plan.from, { store: database, secrets })
  await using to = await openStoredBytes(plan.to, { store: database, secrets })
  const id = await records.readOwn(BLOBS_ID)
  await mustBeFree(to, id)
  const { hashes, bytes } = await moveBytes(from, to)
  await bindBytes(to, id)
  return { files: hashes.size, bytes, missing: await countMissing(records, hashes) }
}

const BLOBS_ID = 'blobs_id'

/** Bytes of another service would look like left-overs to this one. */
async function mustBeFree({ place }: StoredBytes, id: string | null): Promise<void> {
  const found = await place.readId()
  if (found === null || found === id) return
  throw new MoveError(`${place.shown} holds the bytes of another service; name an empty place`)
}

/** Every piece is read whole and compared with its name. */
async function moveBytes(from: StoredBytes, to: StoredBytes): Promise<{ hashes: Set<string>; bytes: number }> {
  const isElsewhere = from.place.shown !== to.place.shown
  const target = await to.openForWriting()
  const found = new Set<string>()
  let bytes = 0
  for await (const hashes of from.list()) {
    for (const hash of hashes) {
      const known = isElsewhere ? await to.sizeOf(hash) : null
      if (isElsewhere && known === null) await to.setAside(hash)
      bytes += known ?? (await readOrCopy(hash, from, isElsewhere ? target : null))
      found.add(hash)
    }
  }
  return { hashes: found, bytes }
}

const PAGE_ROWS = 1000

async function countMissing(records: RecordReader, hashes: ReadonlySet<string>): Promise<number> {
  let missing = 0
  for (const kind of records.kinds.filter(({ name }) => name === 'asset' || name === 'output')) {
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

/** `target` null: the bytes stay where they are and are only checked. */
async function readOrCopy(hash: string, from: StoredBytes, target: Pick<BlobStore, 'receive'> | null): Promise<number> {
  if (target === null) {
    const read = await from.measure(hash)
    if (read?.hash !== hash) throw damaged(hash)
    return read.bytes
  }
  const pending = await target.receive(from.read(hash), { maxBytes: Number.POSITIVE_INFINITY })
  if (pending.hash !== hash) {
    await pending.discard()
    throw damaged(hash)
  }
  await pending.keep()
  return pending.sizeBytes
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

async function bindBytes({ place, prepare }: StoredBytes, id: string | null): Promise<void> {
  if (id === null) return
  await prepare()
  await place.writeId(id)
}
