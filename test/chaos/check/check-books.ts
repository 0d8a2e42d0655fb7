/** The books, read from outside when all nodes have ended: what is counted, charged, held and kept must agree with what happened. */
import { Client } from 'pg'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { FlawKind, ToldAt } from '../load/told.ts'
import { FILM_MICROS, PAINT_MICROS } from '../world/settings-files.ts'
import type { World } from '../world/world.ts'
import { type Flaw, of } from './check-told.ts'

/** Each counts what must not be there. */
const NONE: readonly (readonly [FlawKind, what: string, sql: string])[] = [
  ['doubled', 'jobs that have ended twice', 'SELECT id FROM job_done GROUP BY id HAVING count(*) > 1'],
  ['doubled', 'jobs that are live and ended', 'SELECT id FROM job JOIN job_done USING (id)'],
  [
    'doubled',
    'names of outputs that were given twice',
    `SELECT account_id || ' ' || file_path AS id FROM output WHERE position IS NOT NULL
     GROUP BY account_id, file_path HAVING count(DISTINCT hash || job_id) > 1`,
  ],
  [
    'double charge',
    'things that were paid for twice',
    "SELECT reference AS id FROM ledger_entry WHERE kind = 'settle' GROUP BY reference HAVING count(*) > 1",
  ],
  [
    'double charge',
    'payments for jobs that do not exist',
    `SELECT reference AS id FROM ledger_entry WHERE kind = 'settle' AND reference LIKE 'job:%' AND charged > 0
       AND NOT EXISTS (SELECT 1 FROM job_done WHERE 'job:' || id = reference)`,
  ],
  [
    'books',
    'jobs that succeeded and were not paid for',
    `SELECT id FROM job_done WHERE status = 'succeeded' AND NOT EXISTS (
       SELECT 1 FROM ledger_entry WHERE kind = 'settle' AND reference = 'job:' || job_done.id)`,
  ],
  ['left over', 'jobs in the queue', "SELECT id || ' ' || status AS id FROM job"],
  ['left over', 'credentials of ended jobs', 'SELECT job_id AS id FROM job_secret'],
  ['left over', 'notes of ended jobs', 'SELECT job_id AS id FROM job_notes'],
  ['left over', 'inputs of ended jobs', 'SELECT job_id AS id FROM job_input'],
  [
    'left over',
    'accounts with calls that are counted as under way',
    'SELECT account_id AS id FROM router_account WHERE running + costly + committed_micros <> 0',
  ],
  ['left over', 'accounts with running jobs', 'SELECT account_id AS id FROM account_load WHERE running <> 0'],
  ['left over', 'holds', 'SELECT id FROM ledger_hold'],
]

export interface CheckedBooks {
  readonly flaws: readonly Flaw[]
  readonly unpaidResults: number
}

export async function checkBooks(world: World, told: readonly ToldAt[]): Promise<CheckedBooks> {
  const flaws: Flaw[] = []
  let unpaidResults = 0
  const add = (kind: FlawKind, text: string, id: string | null = null) => flaws.push({ kind, text, id, at: null })
  const client = new Client({ connectionString: world.databaseUrl() })
  await client.connect()
  try {
    for (const [kind, what, sql] of NONE) {
      const { rows } = await client.query(sql)
      if (rows.length > 0) add(kind, `${rows.length} ${what}, such as ${rows[0].id}`, rows[0].id)
    }
    await checkLedger(world, add)
    unpaidResults = await checkCalls(world, told, client, add)
  } finally {
    await client.end()
  }
  return { flaws, unpaidResults }
}

type Add = (kind: FlawKind, text: string, id?: string | null) => void

async function checkLedger(world: World, add: Add): Promise<void> {
  await using store = await openPostgresStore({ url: world.databaseUrl(), migrates: false })
  const { faults, openHolds } = await store.ledger.check()
  for (const fault of faults) add('books', `the ledger: ${JSON.stringify(fault)}`)
  if (openHolds !== 0) add('left over', `${openHolds} holds are open`)
  const repaired = await store.accounts.repairCounters()
  if (repaired !== 0) add('books', `${repaired} counters differ from the rows that they count`)
}

/**
 * Every call that gave a result is paid for at most once, no other is, and the provider made nothing twice. A node that is cut off from the
 * store for longer than its leases gives its callers what it has, and charges nobody. Resolves with how many that were.
 */
async function checkCalls(world: World, told: readonly ToldAt[], client: Client, add: Add): Promise<number> {
  let unpaid = 0
  // A key whose call made nothing may have been tried again: its last outcome counts.
  const calls = new Map(of(told, 'call').map((call) => [call.key, call]))
  const made = [...calls.values()].filter(({ generation }) => generation !== null)
  const generations = new Set(made.map(({ generation }) => generation))
  if (generations.size !== made.length) add('doubled', 'two calls were given the same generation')
  const { rows } = await client.query(
    `SELECT account_id, count(*)::int AS calls, sum(charged)::bigint AS charged
     FROM ledger_entry WHERE kind = 'settle' AND reference LIKE 'call:%' AND charged > 0 GROUP BY account_id`,
  )
  for (const { id, grantedMicros } of world.accounts) {
    const paid = rows.find(({ account_id }) => account_id === id) ?? { calls: 0, charged: 0 }
    const own = made.filter(({ account }) => account === id)
    const due = own.reduce((sum, { model }) => sum + (model === 'paint' ? PAINT_MICROS : FILM_MICROS), 0)
    unpaid += Math.max(0, own.length - paid.calls)
    if (paid.calls > own.length || Number(paid.charged) > due)
      add(
        'double charge',
        `${id} paid ${paid.charged} for ${paid.calls} calls, and had ${own.length} results worth ${due}`,
      )
    const all = await client.query(
      `SELECT coalesce(sum(charged), 0)::bigint AS charged FROM ledger_entry WHERE account_id = $1 AND kind = 'settle'`,
      [id],
    )
    const balance = await client.query('SELECT available FROM credit_account WHERE account_id = $1', [id])
    if (Number(balance.rows[0].available) !== grantedMicros - Number(all.rows[0].charged))
      add('books', `the balance of ${id} is ${balance.rows[0].available}`)
  }
  for (const key of world.provider.keys()) {
    const times = world.provider.generationsOf(key).length
    if (times > 1) add('doubled', `the provider was made to generate ${times} times for ${key}`, key)
  }
  return unpaid
}
