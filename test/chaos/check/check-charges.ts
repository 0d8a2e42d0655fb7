/**
 * What accounts paid, entry by entry: each job by how and when it ended, each model call by what its caller was given. The books must
 * agree to the micro-dollar; what nobody was charged for although it was given away must have the one reason that there is for it.
 */
import type { Client } from 'pg'
import { chargeOf } from '../../../src/domain/jobs/end/charge.ts'
import type { JobStatus } from '../../../src/domain/jobs/transitions.ts'
import type { FlawKind, ToldAt } from '../load/told.ts'
import { FILM_MICROS, JOB_PRICE, PAINT_MICROS } from '../world/settings-files.ts'
import type { World } from '../world/world.ts'
import { of } from './check-told.ts'

export type Add = (kind: FlawKind, text: string, id?: string | null) => void

const JOBS = `
  SELECT done.id, status, error, started_at::float8 AS started, completed_at::float8 AS ended,
    coalesce(sum(charged), 0)::float8 AS charged, count(entry.seq)::int AS entries
  FROM job_done AS done LEFT JOIN ledger_entry AS entry ON kind IN ('settle', 'release') AND reference = 'job:' || done.id
  GROUP BY done.id, status, error, started_at, completed_at`

interface JobCharge {
  readonly id: string
  readonly status: JobStatus
  readonly error: string | null
  readonly started: number | null
  readonly ended: number
  readonly charged: number
  readonly entries: number
}

export async function checkJobCharges(client: Client, add: Add): Promise<void> {
  const { rows } = await client.query<JobCharge>(JOBS)
  for (const { id, status, error, started, ended, charged, entries } of rows) {
    const errorCode = error === null ? null : (JSON.parse(error) as { code: string }).code
    const end = { from: 'running', to: status, errorCode, startedAt: started, endedAt: ended } as const
    // A job that went back to the queue and was canceled there has a start, and costs nothing.
    const due = [chargeOf(JOB_PRICE, end), ...(status === 'canceled' ? [0] : [])]
    if (entries !== 1 || !due.includes(charged))
      add('double charge', `job ${id} ${status}: paid ${charged} in ${entries} entries, due were ${due[0]}`, id)
  }
}

const CALLS = `
  SELECT account_id, split_part(reference, ':', 2) AS call, sum(charged)::float8 AS charged
  FROM ledger_entry WHERE kind = 'settle' AND reference LIKE 'call:%' AND charged > 0 GROUP BY account_id, call`
const KEYS = 'SELECT id, account_id, key, state FROM router_call WHERE key IS NOT NULL'

const PRICES = { paint: PAINT_MICROS, film: FILM_MICROS }

/**
 * Every call that gave a result is paid for exactly once and at its price, no other is paid for at all, and the provider made nothing
 * twice. A node that is cut off from the store for longer than its leases gives its callers what it has, and charges nobody: the
 * record of such a call says that it was interrupted (decision 0033). Resolves with the keys of those.
 */
export async function checkCallCharges(
  world: World,
  told: readonly ToldAt[],
  parts: { readonly client: Client; readonly add: Add },
): Promise<string[]> {
  const { client, add } = parts
  // A key whose call made nothing may have been tried again: its last outcome counts.
  const calls = new Map(of(told, 'call').map((call) => [call.key, call]))
  const made = [...calls.values()].filter(({ generation }) => generation !== null)
  if (new Set(made.map(({ generation }) => generation)).size !== made.length)
    add('doubled', 'two calls were given the same generation')
  for (const key of world.provider.keys()) {
    const times = world.provider.generationsOf(key).length
    if (times > 1) add('doubled', `the provider was made to generate ${times} times for ${key}`, key)
  }
  const paid = new Map((await client.query(CALLS)).rows.map((row) => [`${row.account_id} ${row.call}`, row.charged]))
  const unpaid: string[] = []
  for (const { id, account_id, key, state } of (await client.query(KEYS)).rows) {
    const charged = paid.get(`${account_id} ${id}`) ?? 0
    paid.delete(`${account_id} ${id}`)
    const call = calls.get(key)
    const due = call === undefined || call.generation === null ? 0 : PRICES[call.model]
    calls.delete(key)
    if (charged === due) continue
    if (charged === 0 && state === 'interrupted') unpaid.push(key)
    else add('double charge', `the call ${key} (${state}) was charged ${charged}, due were ${due}`, key)
  }
  for (const [call, charged] of paid) add('double charge', `${charged} were paid for ${call}, which no key led to`)
  for (const { key, generation } of calls.values())
    if (generation !== null) add('lost', `the call ${key} gave a result, and has no record`, key)
  return unpaid
}
