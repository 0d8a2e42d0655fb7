/** The webhook of one job or call, kept in the operation that writes it, and before it. One that was given up is tried anew. */
import type { NewHook } from '../../../../domain/webhooks/webhook.ts'
import { run, type Steps } from '../../statements/operation.ts'
import { command } from '../../statements/statement.ts'
import { toEventsText } from '../../tables/webhooks.ts'

const KEEP = command(
  'webhooks.keepHook',
  `INSERT INTO webhook_endpoint AS known
     (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
   VALUES (:id, :accountId, 'job', :url, '', :events, :secret, 'enabled', :at, :at, :at)
   ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
     failing_since = CASE WHEN known.state = 'enabled' THEN known.failing_since END`,
)

export function* keepHook(accountId: string, { id, url, events, secret }: NewHook, at: Date): Steps<void> {
  yield* run(KEEP, { accountId, id, url, events: toEventsText(events), secret, at })
}
