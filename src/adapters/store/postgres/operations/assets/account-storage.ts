/**
 * What an account keeps, equal bytes once. Every record over a blob counts in `account_blob`; the first one of an account adds its
 * bytes to the account's storage, and the last one takes them off. Rows are taken in the order of their keys, so that two
 * transactions never wait for each other crosswise.
 */
import { type Queryable, statement } from '../../database/statement.ts'

interface BlobRecord {
  readonly accountId: string
  readonly hash: string
  readonly sizeBytes: number
}

const ADD = statement<[accountId: string, bytes: number]>(
  'storage.add-records',
  `WITH added AS (
     INSERT INTO account_blob AS known (account_id, hash, records, size_bytes)
     SELECT account_id, hash, count(*), max(size_bytes)
     FROM unnest($1::text[], $2::text[], $3::bigint[]) AS record(account_id, hash, size_bytes)
     GROUP BY account_id, hash ORDER BY account_id, hash
     ON CONFLICT (account_id, hash) DO UPDATE SET records = known.records + excluded.records
     RETURNING account_id, size_bytes, xmax = 0 AS is_first)
   SELECT account_id, sum(size_bytes)::bigint FROM added WHERE is_first GROUP BY account_id ORDER BY account_id`,
)
const TAKE = statement<[accountId: string, bytes: number]>(
  'storage.take-records',
  `WITH gone AS MATERIALIZED (
     SELECT account_id, hash, count(*) AS records
     FROM unnest($1::text[], $2::text[]) AS record(account_id, hash) GROUP BY account_id, hash),
   locked AS MATERIALIZED (
     SELECT account_id, hash, account_blob.records - gone.records AS rest, size_bytes
     FROM account_blob JOIN gone USING (account_id, hash) ORDER BY account_id, hash FOR UPDATE OF account_blob),
   fewer AS (
     UPDATE account_blob SET records = rest FROM locked
     WHERE account_blob.account_id = locked.account_id AND account_blob.hash = locked.hash AND rest > 0),
   last AS (
     DELETE FROM account_blob USING locked
     WHERE account_blob.account_id = locked.account_id AND account_blob.hash = locked.hash AND rest <= 0)
   SELECT account_id, -sum(size_bytes)::bigint FROM locked WHERE rest <= 0 GROUP BY account_id ORDER BY account_id`,
)
const COUNT = statement(
  'storage.count-bytes',
  `INSERT INTO account_storage AS known (account_id, bytes)
   SELECT account_id, bytes FROM unnest($1::text[], $2::bigint[]) AS change(account_id, bytes) ORDER BY account_id
   ON CONFLICT (account_id) DO UPDATE SET bytes = known.bytes + excluded.bytes`,
)
const READ = statement<[number]>('storage.read', 'SELECT bytes FROM account_storage WHERE account_id = $1')

export async function addRecords(tx: Queryable, records: readonly BlobRecord[]): Promise<void> {
  if (records.length === 0) return
  const sizes = records.map(({ sizeBytes }) => sizeBytes)
  await addBytes(tx, await tx.all(ADD, [...toColumns(records), sizes]))
}

export async function removeRecords(tx: Queryable, records: readonly Omit<BlobRecord, 'sizeBytes'>[]): Promise<void> {
  if (records.length === 0) return
  await addBytes(tx, await tx.all(TAKE, toColumns(records)))
}

/** For bytes that are kept without a record: answers of models. At most one change for each account; negative takes off. */
export async function addBytes(
  tx: Queryable,
  changes: readonly (readonly [accountId: string, bytes: number])[],
): Promise<void> {
  if (changes.length === 0) return
  await tx.run(COUNT, [changes.map(([accountId]) => accountId), changes.map(([, bytes]) => bytes)])
}

export async function readStoredBytes(db: Queryable, accountId: string): Promise<number> {
  return (await db.get(READ, [accountId]))?.[0] ?? 0
}

function toColumns(records: readonly Omit<BlobRecord, 'sizeBytes'>[]): [string[], string[]] {
  return [records.map(({ accountId }) => accountId), records.map(({ hash }) => hash)]
}
