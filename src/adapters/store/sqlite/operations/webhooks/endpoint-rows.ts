/** Endpoints that come with jobs and calls. */
import type { DatabaseSync } from 'node:sqlite'
import type { NewHook } from '../../../../../domain/webhooks/webhook.ts'
import { toEventsText } from '../../../tables/webhooks.ts'

/** With the job or call that names it: in the same transaction, and before it. One that was given up is tried anew. */
export function prepareKeepHook(database: DatabaseSync): (accountId: string, hook: NewHook, now: number) => void {
  const upsert = database.prepare(`
    INSERT INTO webhook_endpoint (id, account_id, kind, url, description, events, secret, state, created_at, changed_at, used_at)
    VALUES (?1, ?2, 'job', ?3, '', ?4, ?5, 'enabled', ?6, ?6, ?6)
    ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, state = 'enabled', reason = NULL, disabled_at = NULL,
      failing_since = iif(state = 'enabled', failing_since, NULL)`)
  return (accountId, { id, url, events, secret }, now) =>
    void upsert.run(id, accountId, url, toEventsText(events), secret, now)
}
