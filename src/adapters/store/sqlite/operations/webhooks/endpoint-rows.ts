/** Endpoints that come with jobs. */
import type { DatabaseSync } from 'node:sqlite'
import type { NewHook } from '../../../../../domain/webhooks/webhook.ts'
import { keepHooks } from '../../../stores/webhooks/keep-hook.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'

/** With the job that names it: in the same transaction, and before it. */
export function prepareKeepHook(database: DatabaseSync): (accountId: string, hook: NewHook, now: number) => void {
  const statements = openStatements(database)
  return (accountId, hook, now) => runOn(statements, keepHooks([{ accountId, hook, at: new Date(now) }]))
}
