/**
 * Claims on Postgres with exact limits, fairness and lanes, against the plainest claim that can be written (the oldest job of a pool
 * by SKIP LOCKED, without accounts), and against themselves with a longer backlog. Both return the job with its workflow, and
 * neither waits for the disk. A check in the database refuses the first job beyond a limit.
 */
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { silentLog } from '../../lib/log.ts'
import { openConnections } from '../../src/adapters/store/postgres/database/connections.ts'
import { openPostgresStore } from '../../src/adapters/store/postgres/open-postgres-store.ts'
import type { JobStore } from '../../src/domain/jobs/job-store.ts'
import { startPostgres } from '../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../kit/figure.ts'

const CLAIMERS = 8
// Fewer than wait in the shortest queue; given back between two bursts.
const BURST = 400
const ROUNDS = 9
const BACKLOGS = [1000, 100_000, 1_000_000] as const
const DAY_MS = 86_400_000
const WORKFLOW_LENGTH = 500

export async function postgresClaims(): Promise<Figure[]> {
  await using server = await startPostgres({ isDurable: true, settings: { max_wal_size: '8GB' } })
  const admin = new Client({ connectionString: server.url })
  await admin.connect()
  try {
    await using store = await openPostgresStore({ url: server.url, maxConnections: 4 * CLAIMERS })
    await using connections = openConnections({ url: server.url, maxConnections: 4 * CLAIMERS, log: silentLog })
    await prepare(admin, store.jobs, store.accounts)
    const plain = () => connections.relaxed.get(PLAIN, ['default', Date.now(), randomUUID(), Date.now() + 30_000])
    const own = () => claim(store.jobs)
    const single = await measure(admin, { backlog: 100_000, accounts: 1 }, { own, plain })
    const rates: Record<number, Rates> = {}
    for (const backlog of BACKLOGS) rates[backlog] = await measure(admin, { backlog, accounts: 10 }, { own, plain })
    const owns = BACKLOGS.map((backlog) => rates[backlog]?.own ?? 0)
    const middle = rates[100_000] ?? single
    return [
      figure('claims on Postgres against plain SKIP LOCKED claims, one account', single.own / single.plain, 0.7, {
        single,
      }),
      figure('claims on Postgres against plain SKIP LOCKED claims, ten accounts', middle.own / middle.plain, 0.5, {
        rates,
      }),
      figure(
        'claims on Postgres with 1,000 to 1,000,000 waiting: slowest against fastest',
        Math.min(...owns) / Math.max(...owns),
        0.8,
        {
          rates,
        },
      ),
    ]
  } finally {
    await admin.end()
  }
}

function figure(name: string, measured: number, bar: number, detail: Figure['detail']): Figure {
  return { name, measured, unit: '%', bar, direction: 'at_least', detail }
}

async function claim(jobs: JobStore): Promise<unknown> {
  const now = new Date()
  const taken = await jobs.claim({
    ...{ pool: 'default', workerId: 'bench', leaseId: randomUUID(), now, leaseUntil: new Date(now.getTime() + 30_000) },
    ...{ engines: [{ engineId: 'engine', lanes: null }], maxOvertakes: 0 },
  })
  if (taken === null) throw new Error('There is always a job to claim.')
  return taken
}

const PLAIN = {
  name: 'bench.plain_claim',
  text: `
    UPDATE plain_job SET status = 'running', started_at = $2, lease_id = $3, lease_until = $4, attempt = attempt + 1,
      version = version + 1
    WHERE id = (
      SELECT id FROM plain_job WHERE status = 'queued' AND pool = $1 ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING *, (SELECT workflow FROM job_text WHERE job_id = plain_job.id AND expires_at = plain_job.expires_at)`,
}

const SUBMITTED = `
  INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count)
  SELECT gen_random_uuid(), 'account-' || (1 + place % $2), 'default', 'queued', 0, 1, $3, 0, 0 FROM generate_series(1, $1) AS place`

async function prepare(
  admin: Client,
  jobs: JobStore,
  accounts: { put(account: object): Promise<void> },
): Promise<void> {
  await accounts.put({ id: 'account-1', maxRunning: 1, maxQueued: 10 })
  // The first submit makes the partition that the others are put into.
  const job = {
    id: randomUUID(),
    accountId: 'account-1',
    pool: 'default',
    priority: 0,
    metadata: {},
    workflow: '{}',
    needs: '',
  }
  const rest = { inputs: [], needsExtraData: false, sealedExtraData: null }
  await jobs.submit({ ...job, ...rest, createdAt: new Date(), expiresAt: new Date(Date.now() + DAY_MS) }, null)
  await admin.query('ALTER TABLE account_load ADD CHECK (running BETWEEN 0 AND max_running)')
  await admin.query('CREATE TABLE plain_job (LIKE job INCLUDING ALL)')
  await admin.query(`CREATE INDEX plain_next ON plain_job (pool, priority DESC, seq) WHERE status = 'queued'`)
}

interface Queue {
  readonly backlog: number
  readonly accounts: number
}

async function fill(admin: Client, { backlog, accounts }: Queue): Promise<void> {
  const [[expiresAt]] = await rows(admin, 'SELECT upper - 1 FROM job_partition ORDER BY upper DESC LIMIT 1')
  await admin.query('TRUNCATE job, job_text, plain_job, account_load')
  await admin.query(SUBMITTED, [backlog, accounts, expiresAt])
  await admin.query(`
    INSERT INTO account_load (account_id, max_running) SELECT DISTINCT account_id, ${BURST} FROM job`)
  await admin.query(`
    INSERT INTO job_text (job_id, expires_at, workflow) SELECT id, expires_at, repeat('x', ${WORKFLOW_LENGTH}) FROM job`)
  await admin.query('INSERT INTO plain_job OVERRIDING SYSTEM VALUE SELECT * FROM job')
  await admin.query('VACUUM ANALYZE job, job_text, plain_job, account_load')
  await admin.query('CHECKPOINT')
}

async function rows(admin: Client, text: string): Promise<[unknown[], ...unknown[][]]> {
  return (await admin.query({ text, rowMode: 'array' })).rows as [unknown[], ...unknown[][]]
}

interface Rates {
  /** Claims per second. */
  readonly own: number
  readonly plain: number
}

/** Rounds alternate, so that a slow minute of the machine affects both; the median round of each counts. */
async function measure(
  admin: Client,
  queue: Queue,
  { own, plain }: Record<keyof Rates, () => Promise<unknown>>,
): Promise<Rates> {
  await fill(admin, queue)
  const seconds: Record<keyof Rates, number[]> = { own: [], plain: [] }
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [name, ask] of [
      ['own', own],
      ['plain', plain],
    ] as const) {
      const took = await timeBurst(ask)
      // The first round prepares the statements.
      if (round > 0) seconds[name].push(took)
    }
    await giveBack(admin)
  }
  return { own: BURST / median(seconds.own), plain: BURST / median(seconds.plain) }
}

async function timeBurst(ask: () => Promise<unknown>): Promise<number> {
  let left = BURST
  const begun = performance.now()
  const claimer = async () => {
    while (left > 0) {
      left -= 1
      await ask()
    }
  }
  await Promise.all(Array.from({ length: CLAIMERS }, claimer))
  return (performance.now() - begun) / 1000
}

async function giveBack(admin: Client): Promise<void> {
  for (const table of ['job', 'plain_job']) {
    await admin.query(`UPDATE ${table} SET status = 'queued', lease_id = NULL WHERE status = 'running'`)
    await admin.query(`VACUUM ${table}`)
  }
  await admin.query('UPDATE account_load SET running = 0')
  await admin.query('VACUUM account_load')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}
