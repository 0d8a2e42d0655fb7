/** What is counted for an account beside its jobs: numbers of prompts, and requests in a window of time. */
import type { DatabaseSync } from 'node:sqlite'
import { prepareRows } from '../statement.ts'

interface PromptNumbersInput {
  readonly accountId: string
  readonly count: number
}

/** The first of `count` numbers in a row. */
export function prepareReservePromptNumbers(database: DatabaseSync): (input: PromptNumbersInput) => number {
  const upsert = prepareRows<[number]>(
    database,
    `INSERT INTO prompt_number (account_id, next) VALUES (?1, ?2)
     ON CONFLICT (account_id) DO UPDATE SET next = next + ?2 RETURNING next - ?2`,
  )
  return ({ accountId, count }) => upsert.get(accountId, count)?.[0] ?? 0
}

interface TakeWindowInput {
  readonly accountId: string
  readonly allowance: number
  readonly windowMs: number
  readonly count: number
  /** Milliseconds. */
  readonly now: number
}

type TakeWindowAnswer = readonly [granted: number, endsAtMs: number]

export function prepareTakeWindow(database: DatabaseSync): (input: TakeWindowInput) => TakeWindowAnswer {
  const select = prepareRows<[number, number]>(database, 'SELECT ends_at, used FROM rate_window WHERE account_id = ?')
  const upsert = database.prepare(`
    INSERT INTO rate_window (account_id, ends_at, used) VALUES (?1, ?2, ?3)
    ON CONFLICT (account_id) DO UPDATE SET ends_at = excluded.ends_at, used = excluded.used`)
  return ({ accountId, allowance, windowMs, count, now }) => {
    const known = select.get(accountId)
    // A window that ends later than one that begins now comes from a clock that was set back, or was made shorter since.
    const isOpen = known !== undefined && known[0] > now && known[0] <= now + windowMs
    const [endsAt, used] = isOpen ? known : [now + windowMs, 0]
    const granted = Math.max(0, Math.min(count, allowance - used))
    if (granted > 0) upsert.run(accountId, endsAt, used + granted)
    return [granted, endsAt]
  }
}
