/**
 * Looks again and again, while the load lasts, whether an account has more under way than it may: by the rows, and by the counters that
 * stand for them. Each look is one statement and sees one moment, whatever the nodes do meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { World } from '../world/world.ts'
import type { Flaw } from './check-told.ts'

const LOOK_EVERY_MS = 1000
const GIVE_UP_MS = 5000

const ABOVE = `
  SELECT 'jobs' AS what, account_id AS id, count(*)::float8 AS found, $1::float8 AS most FROM job
    WHERE status IN ('running', 'canceling') GROUP BY account_id HAVING count(*) > $1::float8
  UNION ALL SELECT 'jobs by its counter', account_id, running, $1::float8 FROM account_load WHERE running > $1::float8
  UNION ALL SELECT 'calls', account_id, count(*), $2::float8 FROM router_call
    WHERE state = 'running' GROUP BY account_id HAVING count(*) > $2::float8
  UNION ALL SELECT 'calls by its counter', account_id, running, $2::float8 FROM router_account WHERE running > $2::float8
  UNION ALL SELECT 'micro-dollars', account_id, available, 0 FROM credit_account WHERE available < 0`

export interface Watched {
  readonly flaws: readonly Flaw[]
  readonly looks: number
}

/** Until the signal comes. */
export async function watchLimits(world: World, signal: AbortSignal): Promise<Watched> {
  const flaws: Flaw[] = []
  let looks = 0
  let lastError: unknown = null
  while (!signal.aborted) {
    const rows = await look(world).catch((error) => {
      lastError = error
      return null
    })
    if (rows !== null) looks += 1
    for (const { what, id, found, most } of rows ?? [])
      flaws.push({ kind: 'over a limit', text: `${id} has ${found} ${what}, and may have ${most}`, id, at: Date.now() })
    await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => {})
  }
  if (looks === 0) flaws.push({ kind: 'over a limit', text: `nobody could look: ${lastError}`, id: null, at: null })
  return { flaws, looks }
}

interface AboveRow {
  readonly what: string
  readonly id: string
  readonly found: number
  readonly most: number
}

/** The database may be away just now. */
async function look(world: World): Promise<AboveRow[]> {
  const client = createClient({ url: world.databaseUrl() })
  try {
    await client.connect()
    const { concurrentJobs, routerConcurrency } = world.limits
    const asked = { text: ABOVE, values: [concurrentJobs, routerConcurrency], query_timeout: GIVE_UP_MS }
    return (await client.query<AboveRow>(asked)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
