/** What is counted for an account beside its jobs, and the newest versions of the lists that every process keeps in memory. */
import type { WindowRate } from '../../../../../domain/credits/rate-limit.ts'
import { type Queryable, statement } from '../../database/statement.ts'

const NEXT_PROMPT = statement<[number]>(
  'counters.prompt',
  `INSERT INTO prompt_number AS known (account_id, next) VALUES ($1, 1)
   ON CONFLICT (account_id) DO UPDATE SET next = known.next + 1 RETURNING next - 1`,
)

export async function nextPromptNumber(db: Queryable, accountId: string): Promise<number> {
  return (await db.get(NEXT_PROMPT, [accountId]))?.[0] ?? 0
}

// A window that ends later than one that begins now comes from a clock that was set back, or was made shorter since.
const IS_OPEN = 'kept.ends_at > $2 AND kept.ends_at <= $2 + $3'
const FIRST = 'least($4::bigint, $5::bigint)'
const MORE = 'greatest(0, least($4, $5 - kept.used))'

const TAKE_WINDOW = statement<[number, number]>(
  'counters.window',
  `INSERT INTO rate_window AS kept (account_id, ends_at, used, granted)
   VALUES ($1, $2::bigint + $3::bigint, ${FIRST}, ${FIRST})
   ON CONFLICT (account_id) DO UPDATE SET
     ends_at = CASE WHEN ${IS_OPEN} THEN kept.ends_at ELSE $2 + $3 END,
     used = CASE WHEN ${IS_OPEN} THEN kept.used + ${MORE} ELSE ${FIRST} END,
     granted = CASE WHEN ${IS_OPEN} THEN ${MORE} ELSE ${FIRST} END
   RETURNING granted, ends_at`,
)

interface TakeWindow extends WindowRate {
  readonly accountId: string
  readonly count: number
  readonly now: Date
}

export async function takeWindow(db: Queryable, take: TakeWindow): Promise<{ granted: number; endsAt: Date }> {
  const { accountId, allowance, windowMs, count, now } = take
  const row = await db.get(TAKE_WINDOW, [accountId, now.getTime(), windowMs, count, allowance])
  const [granted, endsAt] = row ?? [0, now.getTime()]
  return { granted, endsAt: new Date(endsAt) }
}
