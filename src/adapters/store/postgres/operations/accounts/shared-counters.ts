/** The numbers of prompts. */
import { type Queryable, statement } from '../../database/statement.ts'

const NEXT_PROMPT = statement<[number]>(
  'counters.prompt',
  `INSERT INTO prompt_number AS known (account_id, next) VALUES ($1, 1)
   ON CONFLICT (account_id) DO UPDATE SET next = known.next + 1 RETURNING next - 1`,
)

export async function nextPromptNumber(db: Queryable, accountId: string): Promise<number> {
  return (await db.get(NEXT_PROMPT, [accountId]))?.[0] ?? 0
}
