/** When a job may begin to run and how long it may wait: what a submit, and a change of a job that waits, may ask for. */
import { invalidField } from '../../errors.ts'

export const PRIORITY_LIMIT = 1_000_000

export function mustBePriority(value: number): void {
  if (Number.isInteger(value) && Math.abs(value) <= PRIORITY_LIMIT) return
  throw invalidField('priority', `must be an integer from -${PRIORITY_LIMIT} to ${PRIORITY_LIMIT}`)
}

export interface QueueTimes {
  /** Left out or null: at once. */
  readonly notBefore?: Date | null
  /** Left out or null: for as long as it is kept. */
  readonly expiresQueuedAfterSeconds?: number | null
}

/** Throws invalid_field with the field that is wrong. `expiresAt`: of the job. */
export function toQueueTimes(
  { notBefore = null, expiresQueuedAfterSeconds: seconds = null }: QueueTimes,
  { createdAt, expiresAt }: { readonly createdAt: Date; readonly expiresAt: Date },
): { readonly notBefore: Date | null; readonly queueUntil: Date | null } {
  mustBeAhead(notBefore, createdAt)
  if (notBefore !== null && notBefore >= expiresAt) throw heldTooLong(expiresAt)
  if (seconds === null) return { notBefore, queueUntil: null }
  if (!Number.isInteger(seconds) || seconds < 1)
    throw invalidField('expires_queued_after', 'must be a whole number of seconds, at least 1')
  const queueUntil = new Date(createdAt.getTime() + seconds * 1000)
  if (!(queueUntil <= expiresAt))
    throw invalidField('expires_queued_after', `is too far: this job is kept until ${expiresAt.toISOString()}`)
  if (notBefore !== null && queueUntil <= notBefore)
    throw invalidField('expires_queued_after', 'must end after not_before, or the job could never run')
  return { notBefore, queueUntil }
}

export function mustBeAhead(notBefore: Date | null, now: Date): void {
  if (notBefore !== null && notBefore <= now)
    throw invalidField('not_before', `must be in the future; it is ${now.toISOString()} now`)
}

export function heldTooLong(until: Date) {
  return invalidField('not_before', `is too far: this job may wait until ${until.toISOString()}`)
}
