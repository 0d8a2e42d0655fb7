/** The numbers of prompts. */
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
