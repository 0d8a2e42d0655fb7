/** Which builds and releases name an uploaded file. A file that is named is there: whoever names it notes that it is used, and so keeps it. */
import { type BuildDefinition, blobsOf } from '../../../../domain/environments/definition.ts'
import { all, run, type Steps } from '../../statements/operation.ts'
import { command, postgresOnly, query, toRows } from '../../statements/statement.ts'
import { buildBlob } from '../../tables/builds.ts'
import { pick } from '../../tables/table.ts'

const LOCK_ACCOUNT = command(
  'builds.lockAccount',
  postgresOnly('SELECT pg_advisory_xact_lock(7267306, hashtext(:accountId))'),
)
const named = pick(buildBlob, 'id', 'kind')
const NAME = query(
  'builds.nameBlobs',
  named,
  (words) => `UPDATE build_blob SET used_at = ${words.greatest('used_at', 'CAST(:at AS bigint)')}
    WHERE account_id = :accountId AND uploaded_at IS NOT NULL AND ${words.isIn('id', ':ids')} RETURNING ${named.columns}`,
)
const TOUCH = command(
  'builds.touchBlobs',
  (words) => `UPDATE build_blob SET used_at = ${words.greatest('used_at', 'CAST(:at AS bigint)')}
    WHERE id IN (SELECT blob_id FROM build_blob_use WHERE holder = :holder)`,
)
const DROP = command('builds.dropUses', 'DELETE FROM build_blob_use WHERE holder = :holder')
const USE = command(
  'builds.useBlobs',
  (words) => `INSERT INTO build_blob_use (blob_id, holder)
    SELECT blob_id, holder FROM ${words.rows(':uses', { blob_id: 'text', holder: 'text' })} AS wanted WHERE true
    ON CONFLICT (blob_id, holder) DO NOTHING`,
)

/** Whatever changes builds, releases or uploaded files of one account comes one after the other. */
export function* lockBuilds(accountId: string): Steps<void> {
  yield* run(LOCK_ACCOUNT, { accountId })
}

interface Holder {
  readonly accountId: string
  readonly holder: string
  readonly at: Date
}

/** What of the definition is not there; nothing is noted then. */
export function* useBlobs({ accountId, holder, at }: Holder, definition: BuildDefinition): Steps<readonly string[]> {
  const wanted = blobsOf(definition)
  const ids = [...wanted.keys()]
  const found = new Map((yield* all(NAME, { accountId, ids, at })).map(({ id, kind }) => [id, kind]))
  const missing = ids.filter((id) => found.get(id) !== wanted.get(id))
  if (missing.length > 0) return missing
  yield* dropUses(holder, at)
  if (ids.length > 0)
    yield* run(
      USE,
      toRows(
        'uses',
        ids.map((id) => ({ blob_id: id, holder })),
      ),
    )
  return []
}

/** What it named counts as used until now. */
export function* dropUses(holder: string, at: Date): Steps<void> {
  yield* run(TOUCH, { holder, at })
  yield* run(DROP, { holder })
}
