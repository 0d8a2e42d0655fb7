/** The books, read from outside when all nodes have ended: what is counted, charged, held and kept must agree with what happened. */
import type { Client } from 'pg'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { FlawKind, ToldAt } from '../load/told.ts'
import type { World } from '../world/world.ts'
import { type Add, checkCallCharges, checkJobCharges } from './check-charges.ts'
import { type Flaw, of } from './check-told.ts'

/** Each counts what must not be there. */
const NONE: readonly (readonly [FlawKind, what: string, sql: string])[] = [
  ['doubled', 'jobs that have ended twice', 'SELECT id FROM job_done GROUP BY id HAVING count(*) > 1'],
  ['doubled', 'jobs that are live and ended', 'SELECT id FROM job JOIN job_done USING (id)'],
  // Except to two jobs of the same graph with the same bytes: a prompt whose answer was lost is sent again, without a key, and an engine
  // may answer that twin from its cache, by the file of the first.
  [
    'doubled',
    'names of outputs that were given twice',
    `SELECT DISTINCT a.account_id || ' ' || a.file_path AS id FROM output AS a
       JOIN output AS b USING (account_id, file_path)
       LEFT JOIN job_text AS of_a ON of_a.job_id = a.job_id LEFT JOIN job_text AS of_b ON of_b.job_id = b.job_id
     WHERE a.position IS NOT NULL AND b.position IS NOT NULL AND a.hash || a.job_id < b.hash || b.job_id
       AND NOT (a.hash = b.hash AND of_a.workflow IS NOT DISTINCT FROM of_b.workflow)`,
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
  /** Keys of calls whose results were given away and not charged. */
  readonly unpaid: readonly string[]
}

const MAX_ATTEMPTS = 3
/** Of jobs that were given up and of results that nobody paid for. */
const MAX_EXCUSED_SHARE = 0.01
const MIN_EXCUSED = 3

interface BooksParts {
  readonly told: readonly ToldAt[]
  /** Jobs that were given up because too many of their workers died. */
  readonly excused: readonly string[]
}

export async function checkBooks(world: World, { told, excused }: BooksParts): Promise<CheckedBooks> {
  const flaws: Flaw[] = []
  const add = (kind: FlawKind, text: string, id: string | null = null) => flaws.push({ kind, text, id, at: null })
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    for (const [kind, what, sql] of NONE) {
      const { rows } = await client.query(sql)
      if (rows.length > 0) add(kind, `${rows.length} ${what}, such as ${rows[0].id}`, rows[0].id)
    }
    await checkLedger(world, add)
    await checkBalances(world, client, add)
    await checkJobCharges(client, add)
    await checkExcuses(excused, client, add)
    const unpaid = await checkCallCharges(world, told, { client, add })
    mustBeFew('jobs were given up', excused.length, { of: of(told, 'job').length, add })
    mustBeFew('results were given away', unpaid.length, { of: of(told, 'call').length, add })
    return { flaws, unpaid }
  } finally {
    await client.end()
  }
}

function mustBeFew(what: string, count: number, { of: all, add }: { readonly of: number; readonly add: Add }): void {
  if (count > Math.max(MIN_EXCUSED, all * MAX_EXCUSED_SHARE)) add('too many excuses', `${count} of ${all} ${what}`)
}

async function checkLedger(world: World, add: Add): Promise<void> {
  await using store = await openPostgresStore({ url: world.databaseUrl(), migrates: false })
  const { faults, openHolds } = await store.ledger.check()
  for (const fault of faults) add('books', `the ledger: ${JSON.stringify(fault)}`)
  if (openHolds !== 0) add('left over', `${openHolds} holds are open`)
  const repaired = await store.accounts.repairCounters()
  if (repaired !== 0) add('books', `${repaired} counters differ from the rows that they count`)
}

/** What was granted is what is left and what was charged. */
async function checkBalances(world: World, client: Client, add: Add): Promise<void> {
  const { rows } = await client.query(
    `SELECT account_id, available::float8, (
       SELECT coalesce(sum(charged), 0)::float8 FROM ledger_entry AS entry WHERE entry.account_id = credit_account.account_id
     ) AS charged FROM credit_account`,
  )
  for (const { id, grantedMicros } of world.accounts) {
    const { available, charged } = rows.find(({ account_id }) => account_id === id) ?? { available: 0, charged: 0 }
    if (available !== grantedMicros - charged)
      add('books', `${id} was granted ${grantedMicros}, paid ${charged} and has ${available}`)
  }
}

/** What may happen must be rare, and each time it happens there must be its reason. */
async function checkExcuses(excused: readonly string[], client: Client, add: Add): Promise<void> {
  const { rows } = await client.query('SELECT id, attempt FROM job_done WHERE id = ANY ($1::uuid[]) AND attempt < $2', [
    excused,
    MAX_ATTEMPTS,
  ])
  for (const { id, attempt } of rows) add('lost', `job ${id} was given up after ${attempt} attempts`, id)
}
