/**
 * Which blobs may go. A blob is referenced by the records of accounts, by the inputs of jobs that have not ended, and by bodies of
 * model calls. Blobs that may have lost their last reference are listed as candidates, and only candidates are examined.
 */
import { type Queryable, statement } from '../../database/statement.ts'

const IS_REFERENCED = `(EXISTS (SELECT 1 FROM account_blob WHERE account_blob.hash = wanted.hash)
  OR EXISTS (SELECT 1 FROM job_input WHERE job_input.hash = wanted.hash)
  OR EXISTS (SELECT 1 FROM router_result WHERE router_result.hash = wanted.hash)
  OR EXISTS (SELECT 1 FROM router_input WHERE router_input.hash = wanted.hash))`

const OFFER = statement(
  'blobs.offer',
  `INSERT INTO blob_candidate (hash, size_bytes, since)
   SELECT hash, max(size_bytes), $3::bigint FROM unnest($1::text[], $2::bigint[]) AS offered(hash, size_bytes) GROUP BY hash ORDER BY hash
   ON CONFLICT (hash) DO UPDATE SET since = greatest(blob_candidate.since, excluded.since)`,
)

interface OfferedBlob {
  readonly hash: string
  readonly sizeBytes: number
}

/** Makes blobs candidates; one that is a candidate already counts as new again. */
export async function offerBlobs(db: Queryable, blobs: readonly OfferedBlob[], now: number): Promise<void> {
  if (blobs.length === 0) return
  await db.run(OFFER, [blobs.map(({ hash }) => hash), blobs.map(({ sizeBytes }) => sizeBytes), now])
}

const TAKE = statement<[hash: string]>(
  'blobs.take-candidates',
  // By an array: the planner takes the limit, which it does not know, for a tenth of the table, and would walk it for a join.
  `DELETE FROM blob_candidate WHERE hash = ANY (ARRAY(
     SELECT hash FROM blob_candidate WHERE since < $1 ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED))
   RETURNING hash`,
)
const UNREFERENCED = statement<[hash: string]>(
  'blobs.unreferenced',
  `SELECT hash FROM unnest($1::text[]) AS wanted(hash) WHERE NOT ${IS_REFERENCED}`,
)

interface Retired {
  readonly retired: readonly string[]
  /** Candidates that were looked at, those with a reference included. */
  readonly examined: number
}

/**
 * Takes old candidates off the list and returns those without reference. The others come back when they lose theirs. The second
 * statement sees what was committed while the first one ran: bytes that get a record in between stay.
 */
export async function retireBlobs(tx: Queryable, cutoff: number, limit: number): Promise<Retired> {
  const taken = (await tx.all(TAKE, [cutoff, limit])).map(([hash]) => hash)
  if (taken.length === 0) return { retired: [], examined: 0 }
  const retired = await tx.all(UNREFERENCED, [taken])
  return { retired: retired.map(([hash]) => hash), examined: taken.length }
}

const KNOWN = statement<[hash: string]>(
  'blobs.known',
  `SELECT hash FROM unnest($1::text[]) AS wanted(hash)
   WHERE ${IS_REFERENCED} OR EXISTS (SELECT 1 FROM blob_candidate WHERE blob_candidate.hash = wanted.hash)`,
)

export async function findKnownBlobs(db: Queryable, hashes: readonly string[]): Promise<string[]> {
  return (await db.all(KNOWN, [hashes])).map(([hash]) => hash)
}
