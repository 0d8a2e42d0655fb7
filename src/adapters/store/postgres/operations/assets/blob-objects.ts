/**
 * Which object of the bucket holds the bytes of which hash. The row of a hash orders storing and removing the same bytes: a removal
 * locks the row while it checks whether the bytes are still used, and an upload of the same bytes waits for that lock.
 */
import { type Queryable, statement } from '../../database/statement.ts'

type ObjectRow = [objectKey: string, sizeBytes: number]

export const FIND_OBJECT = statement<ObjectRow>(
  'objects.find',
  'SELECT object_key, size_bytes FROM blob WHERE hash = $1',
)

export const HASH_OF_OBJECT = statement<[hash: string]>(
  'objects.hash-of',
  'SELECT hash FROM blob WHERE object_key = $1',
)

const KEEP = statement<[hash: string, ...ObjectRow]>(
  'objects.keep',
  `INSERT INTO blob (hash, object_key, size_bytes, since)
   SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS kept(hash, object_key, size_bytes, since) ORDER BY hash
   ON CONFLICT (hash) DO UPDATE SET since = greatest(blob.since, excluded.since)
   RETURNING hash, object_key, size_bytes`,
)

interface KeptObject {
  readonly hash: string
  readonly objectKey: string
  readonly sizeBytes: number
  readonly now: number
}

/** Each hash once. Returns what is recorded for each of them, in their order. */
export async function keepObjects(db: Queryable, kept: readonly KeptObject[]): Promise<ObjectRow[]> {
  const columns = [
    kept.map(({ hash }) => hash),
    kept.map(({ objectKey }) => objectKey),
    kept.map(({ sizeBytes }) => sizeBytes),
    kept.map(({ now }) => now),
  ]
  const rows = new Map((await db.all(KEEP, columns)).map(([hash, ...row]) => [hash, row]))
  return kept.map(({ hash, objectKey, sizeBytes }) => rows.get(hash) ?? [objectKey, sizeBytes])
}

export const TOUCH_OBJECT = statement<ObjectRow>(
  'objects.touch',
  'UPDATE blob SET since = greatest(since, $2) WHERE hash = $1 RETURNING object_key, size_bytes',
)

const LOCK = statement<[objectKey: string]>('objects.lock', 'SELECT object_key FROM blob WHERE hash = $1 FOR UPDATE')
const FORGET = statement('objects.forget', 'DELETE FROM blob WHERE hash = $1')
const THROW_AWAY = statement(
  'objects.throw-away',
  'INSERT INTO blob_garbage (object_key, since) VALUES ($1, $2) ON CONFLICT (object_key) DO NOTHING',
)

async function letGo(tx: Queryable, hash: string, objectKey: string, now: number): Promise<void> {
  await Promise.all([tx.run(FORGET, [hash]), tx.run(THROW_AWAY, [objectKey, now])])
}

interface Removal {
  readonly isKnown: () => Promise<boolean>
  readonly now: number
}

export async function removeObject(tx: Queryable, hash: string, { isKnown, now }: Removal): Promise<void> {
  const [objectKey = null] = (await tx.get(LOCK, [hash])) ?? []
  if (objectKey !== null && !(await isKnown())) await letGo(tx, hash, objectKey, now)
}

interface Replacement {
  readonly objectKey: string
  readonly sizeBytes: number
  /** The object that is to go. */
  readonly bad: string
  readonly now: number
}

export async function replaceObject(
  tx: Queryable,
  hash: string,
  { bad, ...replacement }: Replacement,
): Promise<ObjectRow | undefined> {
  const { now } = replacement
  const [present = null] = (await tx.get(LOCK, [hash])) ?? []
  if (present === bad) await letGo(tx, hash, bad, now)
  const [row] = await keepObjects(tx, [{ hash, ...replacement }])
  return row
}

export const LIST_HASHES = statement<[hash: string]>(
  'objects.list',
  'SELECT hash FROM blob WHERE hash > $1 ORDER BY hash LIMIT $2',
)
export const OLD_GARBAGE = statement<[objectKey: string]>(
  'objects.garbage',
  'SELECT object_key FROM blob_garbage WHERE since < $1 ORDER BY since LIMIT $2',
)
export const FORGET_GARBAGE = statement(
  'objects.forget-garbage',
  'DELETE FROM blob_garbage WHERE object_key = ANY ($1::text[])',
)
export const THROW_AWAY_MANY = statement(
  'objects.throw-away-many',
  `INSERT INTO blob_garbage (object_key, since) SELECT DISTINCT object_key, $2::bigint FROM unnest($1::text[]) AS thrown(object_key)
   ON CONFLICT (object_key) DO UPDATE SET since = excluded.since`,
)
export const KNOWN_OBJECTS = statement<[objectKey: string]>(
  'objects.known',
  `SELECT object_key FROM blob WHERE object_key = ANY ($1::text[])
   UNION ALL SELECT object_key FROM blob_garbage WHERE object_key = ANY ($1::text[])`,
)
