/** Endpoints that come with jobs and calls. */
import type { NewHook } from '../../../../../domain/webhooks/webhook.ts'
import { toEventsText } from '../../../tables/webhooks.ts'
import { type Queryable, statement } from '../../database/statement.ts'

export interface KeptHook {
  readonly accountId: string
  readonly hook: NewHook
  readonly at: number
}

const STALE_MS = 3_600_000

// Only rows that are new, given up or long unused: one that many jobs name is not even locked.
const KEEP_HOOKS = statement(
  'webhooks.keep-hooks',
  `INSERT INTO webhook_endpoint AS known
     (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
   SELECT DISTINCT ON (id) id, account_id, 'job', url, '', events, secret, 'enabled', at, at, at
   FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[])
     AS new(id, account_id, url, events, secret, at)
   WHERE NOT EXISTS (
     SELECT 1 FROM webhook_endpoint AS used
     WHERE used.id = new.id AND used.state = 'enabled' AND used.used_at > new.at - ${STALE_MS})
   ORDER BY id
   ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
     failing_since = CASE WHEN known.state = 'enabled' THEN known.failing_since END`,
)

/** With the jobs or calls that name them: in the same transaction, and before them. One that was given up is tried anew. */
export async function keepHooks(tx: Queryable, hooks: readonly KeptHook[]): Promise<void> {
  if (hooks.length === 0) return
  await tx.run(KEEP_HOOKS, [
    hooks.map(({ hook }) => hook.id),
    hooks.map(({ accountId }) => accountId),
    hooks.map(({ hook }) => hook.url),
    hooks.map(({ hook }) => toEventsText(hook.events)),
    hooks.map(({ hook }) => toBytes(hook.secret)),
    hooks.map(({ at }) => at),
  ])
}

function toBytes(bytes: Uint8Array | null): Buffer | null {
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
