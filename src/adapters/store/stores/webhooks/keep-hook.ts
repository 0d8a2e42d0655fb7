/** The webhooks of jobs and calls, kept in the operation that writes these, and before them. One that was given up is tried anew. */
import type { NewHook } from '../../../../domain/webhooks/webhook.ts'
import { run, type Steps } from '../../statements/operation.ts'
import { command, toRows } from '../../statements/statement.ts'
import { toEventsText } from '../../tables/webhooks.ts'

interface KeptHook {
  readonly accountId: string
  readonly hook: NewHook
  readonly at: Date
}

const STALE_MS = 3_600_000
const HOOK = {
  ...({ id: 'text', account_id: 'text', url: 'text', description: 'text', events: 'text' } as const),
  ...({ secret: 'text', at: 'bigint' } as const),
}

// Only rows that are new, given up or long unused: one that many jobs or calls name is not even locked.
const KEEP = command(
  'webhooks.keepHooks',
  (words) => `
    INSERT INTO webhook_endpoint AS known
      (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
    SELECT id, account_id, 'job', url, description, events, ${words.either('unhex(secret)', "decode(secret, 'hex')")}, 'enabled', at, at, at
    FROM ${words.rows(':hooks', HOOK)} AS new
    WHERE NOT EXISTS (
      SELECT 1 FROM webhook_endpoint AS used
      WHERE used.id = new.id AND used.state = 'enabled' AND used.used_at > new.at - ${STALE_MS})
    ORDER BY id
    ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
      failing_since = CASE WHEN known.state = 'enabled' THEN known.failing_since END`,
)

export function* keepHooks(hooks: readonly KeptHook[]): Steps<void> {
  if (hooks.length === 0) return
  const rows = hooks.map(({ accountId, hook: { id, url, description, events, secret }, at }) => ({
    ...{ id, account_id: accountId, url, description, events: toEventsText(events), at },
    secret: secret === null ? null : Buffer.from(secret).toString('hex'),
  }))
  yield* run(KEEP, toRows('hooks', [...new Map(rows.map((row) => [row.id, row])).values()]))
}
