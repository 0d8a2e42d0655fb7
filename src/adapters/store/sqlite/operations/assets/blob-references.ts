/**
 * Which blobs may go. A blob is referenced by asset records, by the inputs of jobs that have not ended, and by bodies of
 * model calls. Blobs that may have lost their last reference are listed as candidates, and only candidates are examined: a
 * collection costs as much as there is to collect.
 */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

export interface OfferedBlob {
  readonly hash: string
  readonly sizeBytes: number
  readonly now: number
}

interface RetireInput {
  readonly cutoff: number
  readonly limit: number
}

interface RetireAnswer {
  readonly retired: readonly string[]
  /** Candidates that were looked at, those with a reference included. */
  readonly examined: number
}

const IS_REFERENCED = `(EXISTS (SELECT 1 FROM asset WHERE hash = ?1) OR EXISTS (SELECT 1 FROM job_input WHERE hash = ?1)
  OR EXISTS (SELECT 1 FROM router_result WHERE hash = ?1) OR EXISTS (SELECT 1 FROM router_input WHERE hash = ?1))`

/** Makes the blob a candidate; one that is a candidate already counts as new again. */
export function prepareOfferBlob(database: DatabaseSync): (blob: OfferedBlob) => void {
  const upsert = database.prepare(`
    INSERT INTO blob_candidate (hash, size_bytes, since) VALUES (?, ?, ?)
    ON CONFLICT (hash) DO UPDATE SET since = max(since, excluded.since)`)
  return ({ hash, sizeBytes, now }) => {
    upsert.run(hash, sizeBytes, now)
  }
}

/** The same for those that nothing refers to. */
export function prepareOfferUnreferenced(database: DatabaseSync): (blobs: readonly OfferedBlob[]) => void {
  const isReferenced = prepareRows<[number]>(database, `SELECT ${IS_REFERENCED}`)
  const offer = prepareOfferBlob(database)
  return (blobs) => {
    for (const blob of blobs) if (isReferenced.get(blob.hash)?.[0] === 0) offer(blob)
  }
}

/** Takes old candidates off the list and returns those without reference. The others come back when they lose theirs. */
export function prepareRetireBlobs(database: DatabaseSync): (input: RetireInput) => RetireAnswer {
  const take = prepareRows<[hash: string]>(
    database,
    `DELETE FROM blob_candidate WHERE hash IN (SELECT hash FROM blob_candidate WHERE since < ? ORDER BY since LIMIT ?)
     RETURNING hash`,
  )
  const isReferenced = prepareRows<[number]>(database, `SELECT ${IS_REFERENCED}`)
  return ({ cutoff, limit }) => {
    const taken = take.all(cutoff, limit)
    const retired = taken.map(([hash]) => hash).filter((hash) => isReferenced.get(hash)?.[0] === 0)
    return { retired, examined: taken.length }
  }
}

export function prepareKnownBlobs(database: DatabaseSync): (hashes: readonly string[]) => string[] {
  const isKnown = prepareRows<[number]>(
    database,
    `SELECT ${IS_REFERENCED} OR EXISTS (SELECT 1 FROM blob_candidate WHERE hash = ?1)`,
  )
  return (hashes) => hashes.filter((hash) => isKnown.get(hash)?.[0] === 1)
}

export function prepareStoredBytes(database: DatabaseSync): (accountId: string) => number {
  const select = prepareRows<[number]>(database, 'SELECT bytes FROM account_storage WHERE account_id = ?')
  return (accountId) => select.get(accountId)?.[0] ?? 0
}
