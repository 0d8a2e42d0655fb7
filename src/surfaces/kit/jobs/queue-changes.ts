/** The queue by hand in the words of the wire, the same for accounts and operators. Bodies are checked against their schema before. */
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField } from '../../../domain/errors.ts'
import type { Pause, PauseScope, WaitingChange } from '../../../domain/jobs/queue/queue-store.ts'

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/i

/** null: none. */
export function readNotBefore(value: JsonValue | undefined): Date | null {
  if (value === undefined || value === null) return null
  const time = typeof value === 'string' && TIME.test(value) ? new Date(value) : null
  if (time !== null && !Number.isNaN(time.getTime())) return time
  throw invalidField('not_before', 'must be a time with its zone, such as 2030-01-31T12:00:00Z')
}

/** `move` and `priority` are never both there. */
export function toWaitingChange(body: JsonObject): WaitingChange {
  const { move, priority, not_before: notBefore } = body
  return {
    ...(move !== undefined && { place: move as 'front' | 'back' }),
    ...(priority !== undefined && { place: { priority: priority as number } }),
    ...(notBefore !== undefined && { notBefore: readNotBefore(notBefore) }),
  }
}

/** Who paused, as it is told to those whose jobs wait. */
const BY = {
  service: 'service',
  pool: 'pool',
  account: 'operator',
  own: 'account',
} as const satisfies Record<PauseScope, string>

export function toPauseView({ scope, reason, pausedAt }: Pause) {
  return { by: BY[scope], reason, since: pausedAt.toISOString() }
}
