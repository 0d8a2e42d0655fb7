/**
 * Claims on Postgres with exact limits, fairness and lanes, against the plainest claim that can be written (the oldest job of a pool
 * by SKIP LOCKED, without accounts), and against themselves with a longer backlog. All return the job with its workflow, and none
 * waits for the disk. A check in the database refuses the first job beyond a limit.
 *
 * Eight claim at a time. `together`: in one process, whose store sends claims of the same moment as one statement, as the worker of
 * a process with free places makes them. `apart`: each in a store of its own, as in eight processes that have one free place; then
 * nothing is gathered, and all compete for the same accounts. Plain claims are never gathered.
 */
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { silentLog } from '../../lib/log.ts'
import { openConnections } from '../../src/adapters/store/postgres/database/connections.ts'
import { openPostgresStore } from '../../src/adapters/store/postgres/open-postgres-store.ts'
import type { JobStore } from '../../src/domain/jobs/job-store.ts'
import type { Store } from '../../src/domain/store.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../kit/figure.ts'
import { readServerMicros } from '../kit/server-cost.ts'

const CLAIMERS = 8
// Fewer than wait in the shortest queue; given back between two bursts.
const BURST = 400
const ROUNDS = 9
const BACKLOGS = [1000, 100_000, 1_000_000] as const
const DAY_MS = 86_400_000
const WORKFLOW_LENGTH = 500
const IDLE_CLAIMS = 200

type Kind = 'together' | 'apart' | 'plain'
/** One for each claimer. */
type Claimers = Readonly<Record<Kind, readonly (() => Promise<unknown>)[]>>

export async function postgresClaims(): Promise<Figure[]> {
  await using server = await startPostgres({ isDurable: true, settings: { max_wal_size: '8GB' } })
  await using opened = new AsyncDisposableStack()
  const admin = new Client({ connectionString: server.url })
  await admin.connect()
  opened.defer(() => admin.end())
  const openStore = async () => opened.use(await openPostgresStore({ url: server.url, maxConnections: 4 }))
  const store = await openStore()
  await prepare(admin, store)
  const stores: Store[] = []
  for (let index = 0; index < CLAIMERS; index += 1) stores.push(await openStore())
  const connections = opened.use(openConnections({ url: server.url, maxConnections: 4 * CLAIMERS, log: silentLog }))
  const plain = () => connections.relaxed.get(PLAIN, ['default', Date.now(), randomUUID(), Date.now() + 30_000])
  const claimers: Claimers = {
    together: stores.map(() => () => claim(store.jobs)),
    apart: stores.map(
      ({ jobs }) =>
        () =>
          claim(jobs),
    ),
    plain: stores.map(() => plain),
  }
  const single = await measure({ admin, server }, { backlog: 100_000, accounts: 1 }, claimers)
  const ten: Record<number, Rates> = {}
  for (const backlog of BACKLOGS) ten[backlog] = await measure({ admin, server }, { backlog, accounts: 10 }, claimers)
  const middle = ten[100_000] ?? single
  const idleMicros = await measureIdle(admin, store.jobs)
  return [
    ...toFigures('one account', single, { together: 0.7, apart: 0.45 }),
    ...toFigures('ten accounts', middle, { together: 0.7, apart: 0.3 }),
    ...(['together', 'apart'] as const).map((kind) => {
      const rates = BACKLOGS.map((backlog) => ten[backlog]?.[kind].perSecond ?? 0)
      const name = `claims on Postgres ${kind} with 1,000 to 1,000,000 waiting: slowest against fastest`
      return figure(name, Math.min(...rates) / Math.max(...rates), 0.8, { ten, idleMicros })
    }),
  ]
}

function toFigures(queue: string, rates: Rates, bars: Readonly<Record<'together' | 'apart', number>>): Figure[] {
  const { plain } = rates
  const toFigure = (kind: 'together' | 'apart') =>
    figure(
      `claims on Postgres ${kind} against plain SKIP LOCKED claims, ${queue}`,
      rates[kind].perSecond / plain.perSecond,
      bars[kind],
      { rates, byProcessorTime: plain.microsEach / rates[kind].microsEach },
    )
  return [toFigure('together'), toFigure('apart')]
}

function figure(name: string, measured: number, bar: number, detail: Figure['detail']): Figure {
  return { name, measured, unit: '%', bar, direction: 'at_least', detail }
}

async function claim(jobs: JobStore): Promise<void> {
  if ((await ask(jobs)) === null) throw new Error('There is always a job to claim.')
}

function ask(jobs: JobStore) {
  const now = new Date()
  return jobs.claim({
    ...{ pool: 'default', workerId: 'bench', leaseId: randomUUID(), now, leaseUntil: new Date(now.getTime() + 30_000) },
    ...{ engines: [{ engineId: 'engine', lanes: null }], maxOvertakes: 0 },
  })
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

async function prepare(admin: Client, { accounts, jobs }: Store): Promise<void> {
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

interface Rate {
  readonly perSecond: number
  /** Processor time of a claim, the server's and this process's. */
  readonly microsEach: number
}

type Rates = Readonly<Record<Kind, Rate>>

interface Machine {
  readonly admin: Client
  readonly server: PostgresServer
}

const KINDS: readonly Kind[] = ['together', 'apart', 'plain']

/** Rounds alternate, so that a slow minute of the machine affects all; the median round of each counts. */
async function measure({ admin, server }: Machine, queue: Queue, claimers: Claimers): Promise<Rates> {
  await fill(admin, queue)
  const rounds: Record<Kind, Rate[]> = { together: [], apart: [], plain: [] }
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const kind of KINDS) {
      const rate = await measureBurst(server, claimers[kind])
      // The first round prepares the statements.
      if (round > 0) rounds[kind].push(rate)
      await giveBack(admin)
    }
  }
  const [together, apart, plain] = KINDS.map((kind) => ({
    perSecond: median(rounds[kind].map(({ perSecond }) => perSecond)),
    microsEach: median(rounds[kind].map(({ microsEach }) => microsEach)),
  })) as [Rate, Rate, Rate]
  return { together, apart, plain }
}

async function measureBurst(server: PostgresServer, claimers: readonly (() => Promise<unknown>)[]): Promise<Rate> {
  let left = BURST
  const [begun, serverBefore, before] = [performance.now(), readServerMicros(server.pid), process.cpuUsage()]
  await Promise.all(
    claimers.map(async (ask) => {
      while (left > 0) {
        left -= 1
        await ask()
      }
    }),
  )
  const elapsedMs = performance.now() - begun
  const { user, system } = process.cpuUsage(before)
  const micros = readServerMicros(server.pid) - serverBefore + user + system
  return { perSecond: (BURST / elapsedMs) * 1000, microsEach: micros / BURST }
}

/** A claim that finds nothing waiting, one after the other. */
async function measureIdle(admin: Client, jobs: JobStore): Promise<number> {
  await admin.query('TRUNCATE job')
  const begun = performance.now()
  for (let count = 0; count < IDLE_CLAIMS; count += 1) await ask(jobs)
  return ((performance.now() - begun) * 1000) / IDLE_CLAIMS
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
