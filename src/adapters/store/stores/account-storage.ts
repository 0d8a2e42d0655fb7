/**
 * What an account keeps, equal bytes once. SQLite counts it by triggers. In Postgres every record over a blob counts in `account_blob`;
 * the first one of an account adds its bytes to the account's storage, and the last one takes them off. Rows are taken in the order of
 * their keys, so that two transactions never wait for each other crosswise.
 */
import { all, run, type Steps } from '../statements/operation.ts'
import { command, postgresOnly, query, toRows } from '../statements/statement.ts'
import { accountStorage } from '../tables/assets.ts'

interface BlobRecord {
  readonly accountId: string
  readonly hash: string
  readonly sizeBytes: number
}

const ADD = query(
  'storage.addRecords',
  accountStorage,
  postgresOnly(`
    WITH added AS (
      INSERT INTO account_blob AS known (account_id, hash, records, size_bytes)
      SELECT account_id, hash, count(*), max(size_bytes)
      FROM unnest(:records.account_id::text[], :records.hash::text[], :records.size_bytes::bigint[]) AS record(account_id, hash, size_bytes)
      GROUP BY account_id, hash ORDER BY account_id, hash
      ON CONFLICT (account_id, hash) DO UPDATE SET records = known.records + excluded.records
      RETURNING account_id, size_bytes, xmax = 0 AS is_first)
    SELECT account_id, sum(size_bytes) AS bytes FROM added WHERE is_first GROUP BY account_id ORDER BY account_id`),
)
const TAKE = query(
  'storage.takeRecords',
  accountStorage,
  postgresOnly(`
    WITH gone AS MATERIALIZED (
      SELECT account_id, hash, count(*) AS records
      FROM unnest(:records.account_id::text[], :records.hash::text[]) AS record(account_id, hash) GROUP BY account_id, hash),
    locked AS MATERIALIZED (
      SELECT account_id, hash, account_blob.records - gone.records AS rest, size_bytes
      FROM account_blob JOIN gone USING (account_id, hash) ORDER BY account_id, hash FOR UPDATE OF account_blob),
    fewer AS (
      UPDATE account_blob SET records = rest FROM locked
      WHERE account_blob.account_id = locked.account_id AND account_blob.hash = locked.hash AND rest > 0),
    last AS (
      DELETE FROM account_blob USING locked
      WHERE account_blob.account_id = locked.account_id AND account_blob.hash = locked.hash AND rest <= 0)
    SELECT account_id, -sum(size_bytes) AS bytes FROM locked WHERE rest <= 0 GROUP BY account_id ORDER BY account_id`),
)
const COUNT = command(
  'storage.countBytes',
  postgresOnly(`
    INSERT INTO account_storage AS known (account_id, bytes)
    SELECT account_id, bytes FROM unnest(:changes.account_id::text[], :changes.bytes::bigint[]) AS change(account_id, bytes)
    ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET bytes = known.bytes + excluded.bytes`),
)

export function* addRecords(records: readonly BlobRecord[]): Steps<void> {
  if (records.length === 0) return
  const rows = records.map(({ accountId, hash, sizeBytes }) => ({ account_id: accountId, hash, size_bytes: sizeBytes }))
  yield* addBytes(yield* all(ADD, toRows('records', rows)))
}

export function* removeRecords(records: readonly Omit<BlobRecord, 'sizeBytes'>[]): Steps<void> {
  if (records.length === 0) return
  const rows = records.map(({ accountId, hash }) => ({ account_id: accountId, hash }))
  yield* addBytes(yield* all(TAKE, toRows('records', rows)))
}

interface BytesChange {
  readonly accountId: string
  readonly bytes: number
}

/** For bytes that are kept without a record: answers of models. At most one change for each account; negative takes off. */
export function* addBytes(changes: readonly BytesChange[]): Steps<void> {
  if (changes.length === 0) return
  yield* run(
    COUNT,
    toRows(
      'changes',
      changes.map(({ accountId, bytes }) => ({ account_id: accountId, bytes })),
    ),
  )
}
