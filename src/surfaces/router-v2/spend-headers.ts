/** What the account has committed to calls under way, as headers; only limits that exist are told. */
import { MICROS_PER_USD } from '../../../lib/usd.ts'
import type { Spend } from '../../domain/models/router-error.ts'

const MICROS_PER_CENT = MICROS_PER_USD / 100

/** Name, value, name, value. */
export function toSpendHeaders(spend: Spend | null): readonly string[] {
  if (spend === null) return []
  const headers: string[] = []
  const { limitMicros, committedMicros, maxCalls, runningCalls } = spend
  if (limitMicros !== null) {
    const limit = Math.floor(limitMicros / MICROS_PER_CENT)
    // Rounded up, so that what is left is never promised twice.
    const current = Math.ceil(committedMicros / MICROS_PER_CENT)
    headers.push('X-Committed-Spend-Limit', String(limit), 'X-Committed-Spend-Current', String(current))
    headers.push('X-Committed-Spend-Remaining', String(Math.max(0, limit - current)))
  }
  if (maxCalls !== null) {
    headers.push('X-Concurrency-Limit', String(maxCalls), 'X-Concurrency-Current', String(runningCalls))
    headers.push('X-Concurrency-Remaining', String(Math.max(0, maxCalls - runningCalls)))
  }
  return headers
}
