/**
 * Which blobs may go. A blob is referenced by the records of accounts, by the inputs of jobs that have not ended, by bodies of
 * model calls, and by what was uploaded for builds. Blobs that may have lost their last reference are listed as candidates, and only
 * candidates are examined: a collection costs as much as there is to collect.
 */
import { all, run, type Steps } from '../statements/operation.ts'
import { both, command, query, toRows, type Words } from '../statements/statement.ts'
import { blobCandidate } from '../tables/assets.ts'
import { pick } from '../tables/table.ts'

export interface OfferedBlob {
  readonly hash: string
  readonly sizeBytes: number
}

const hashOnly = pick(blobCandidate, 'hash')

function isReferenced({ either }: Words): string {
  const tables = [either('asset', 'account_blob'), 'job_input', 'router_result', 'router_input', 'build_blob']
  return `(${tables.map((table) => `EXISTS (SELECT 1 FROM ${table} WHERE ${table}.hash = wanted.hash)`).join(' OR ')})`
}

// The parser of SQLite needs the WHERE before ON CONFLICT.
const OFFER = command(
  'blobs.offer',
  (words) => `
    INSERT INTO blob_candidate (hash, size_bytes, since)
    SELECT hash, max(size_bytes), CAST(:now AS bigint)
    FROM ${words.rows(':blobs', { hash: 'text', size_bytes: 'bigint' })} AS wanted WHERE true GROUP BY hash ORDER BY hash
    ON CONFLICT (hash) DO UPDATE SET since = ${words.greatest('blob_candidate.since', 'excluded.since')}`,
)
const TAKE = query(
  'blobs.takeCandidates',
  hashOnly,
  both({
    sqlite: `DELETE FROM blob_candidate WHERE hash IN (SELECT hash FROM blob_candidate WHERE since < :cutoff ORDER BY since LIMIT :limit)
      RETURNING hash`,
    // By an array: the planner takes a limit that it does not know for a tenth of the table, and would walk it for a join.
    postgres: `DELETE FROM blob_candidate WHERE hash = ANY (ARRAY(
      SELECT hash FROM blob_candidate WHERE since < :cutoff ORDER BY since LIMIT :limit FOR UPDATE SKIP LOCKED)) RETURNING hash`,
  }),
)
const wanted = ({ either }: Words) =>
  either('(SELECT value AS hash FROM json_each(:hashes)) AS wanted', 'unnest(:hashes::text[]) AS wanted (hash)')
const UNREFERENCED = query(
  'blobs.unreferenced',
  hashOnly,
  (words) => `SELECT hash FROM ${wanted(words)} WHERE NOT ${isReferenced(words)}`,
)
const KNOWN = query(
  'blobs.known',
  hashOnly,
  (words) => `SELECT hash FROM ${wanted(words)}
    WHERE ${isReferenced(words)} OR EXISTS (SELECT 1 FROM blob_candidate WHERE blob_candidate.hash = wanted.hash)`,
)

function toBlobRows(blobs: readonly OfferedBlob[]) {
  return toRows(
    'blobs',
    blobs.map(({ hash, sizeBytes }) => ({ hash, size_bytes: sizeBytes })),
  )
}

/** Makes blobs candidates; one that is a candidate already counts as new again. */
export function* offerBlobs(blobs: readonly OfferedBlob[], now: Date): Steps<void> {
  if (blobs.length > 0) yield* run(OFFER, { now, ...toBlobRows(blobs) })
}

export interface Retired {
  readonly retired: readonly string[]
  /** Candidates that were looked at, those with a reference included. */
  readonly examined: number
}

/**
 * Takes old candidates off the list and returns those without reference. The others come back when they lose theirs. The second
 * statement sees what was committed while the first one ran: bytes that get a record in between stay.
 */
export function* retireBlobs(cutoff: Date, limit: number): Steps<Retired> {
  const hashes = (yield* all(TAKE, { cutoff, limit })).map(({ hash }) => hash)
  if (hashes.length === 0) return { retired: [], examined: 0 }
  const retired = yield* all(UNREFERENCED, { hashes })
  return { retired: retired.map(({ hash }) => hash), examined: hashes.length }
}

export function* findKnownBlobs(hashes: readonly string[]): Steps<string[]> {
  return hashes.length === 0 ? [] : (yield* all(KNOWN, { hashes })).map(({ hash }) => hash)
}
