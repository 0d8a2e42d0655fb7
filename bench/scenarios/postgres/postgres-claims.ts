/**
 * Claims on Postgres with exact limits, fairness and lanes, against the plainest claim that can be written (the oldest job of a pool
 * by SKIP LOCKED, without accounts), and against themselves with a longer backlog. All return the job with its workflow, and none
 * waits for the disk. A check in the database refuses the first job beyond a limit.
 *
 * Eight claim at a time, each in a store of its own, as in eight processes that have a free place: all compete for the same accounts.
 */
import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { silentLog } from '../../../lib/log.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openConnections } from '../../../src/adapters/store/postgres/database/connections.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { postgresOnly, query } from '../../../src/adapters/store/statements/statement.ts'
import { shape, text, uuid } from '../../../src/adapters/store/tables/table.ts'
import type { JobStore } from '../../../src/domain/jobs/job-store.ts'
import type { Store } from '../../../src/domain/store.ts'
import { type PostgresServer, startPostgres } from '../../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../../kit/figure.ts'
import { readFamilyMicros } from '../../kit/processor-time.ts'

const CLAIMERS = 8
// Fewer than wait in the shortest queue; given back between two bursts.
const BURST = 400
const ROUNDS = 9
const BACKLOGS = [1000, 100_000, 1_000_000] as const
const DAY_MS = 86_400_000
const WORKFLOW_LENGTH = 500
const IDLE_CLAIMS = 200
// As the engines of the service offer: it has lanes wherever several processes share a database.
const LANE = 'lane'
const ENGINES = [{ engineId: 'engine', lanes: [{ lane: LANE, rank: 0 }] }] as const
const MAX_OVERTAKES = 64

type Kind = 'fair' | 'plain'
/** One for each claimer. */
type Claimers = Readonly<Record<Kind, readonly (() => Promise<unknown>)[]>>

interface Queue {
  readonly backlog: number
  readonly accounts: number
}

const SINGLE: Queue = { backlog: 100_000, accounts: 1 }

export async function postgresClaims(): Promise<Figure[]> {
  await using server = await startPostgres({ isDurable: true, settings: { max_wal_size: '8GB' } })
  await using opened = new AsyncDisposableStack()
  const queues: OpenQueue[] = []
  for (const queue of [SINGLE, ...BACKLOGS.map((backlog) => ({ backlog, accounts: 10 }))]) {
    queues.push(await openQueue(server, queue, opened))
  }
  const [single, ...ten] = await measure(server, queues)
  const middle = ten[BACKLOGS.indexOf(100_000)]
  if (single === undefined || middle === undefined) throw new Error('Every queue was measured.')
  const idleMicros = await measureIdle(queues[0] as OpenQueue)
  const byBacklog = Object.fromEntries(BACKLOGS.map((backlog, index) => [backlog, ten[index]]))
  return [
    toFigure('one account', single, 0.4),
    toFigure('ten accounts', middle, 0.35),
    toBacklogFigure(ten, { byBacklog, idleMicros }),
  ]
}

interface OpenQueue {
  readonly admin: Client
  readonly jobs: JobStore
  readonly claimers: Claimers
}

/** In a database of its own. */
async function openQueue(server: PostgresServer, queue: Queue, opened: AsyncDisposableStack): Promise<OpenQueue> {
  const name = `queue_${queue.accounts}_${queue.backlog}`
  const maintenance = createClient({ url: server.url })
  await maintenance.connect()
  await maintenance.query(`CREATE DATABASE ${name}`)
  await maintenance.end()
  const { href: url } = Object.assign(new URL(server.url), { pathname: `/${name}` })
  const admin = createClient({ url })
  await admin.connect()
  opened.defer(() => admin.end())
  const openStore = async () => opened.use(await openPostgresStore({ url, maxConnections: 4 }))
  const store = await openStore()
  await prepare(admin, store)
  await fill(admin, queue)
  const stores: Store[] = []
  for (let index = 0; index < CLAIMERS; index += 1) stores.push(await openStore())
  const connections = opened.use(openConnections({ url, maxConnections: 4 * CLAIMERS, log: silentLog }))
  const plain = () =>
    connections.relaxed.get(PLAIN, {
      ...{ pool: 'default', now: Date.now(), leaseId: randomUUID(), until: Date.now() + 30_000 },
    })
  const claimers: Claimers = {
    fair: stores.map(
      ({ jobs }) =>
        () =>
          claim(jobs),
    ),
    plain: stores.map(() => plain),
  }
  return { admin, jobs: store.jobs, claimers }
}

function toFigure(queue: string, { fair, plain }: Rates, bar: number): Figure {
  const name = `claims on Postgres against plain SKIP LOCKED claims, ${queue}`
  const byProcessorTime = plain.microsEach / fair.microsEach
  return figure(name, fair.perSecond / plain.perSecond, bar, { rates: { fair, plain }, byProcessorTime })
}

function toBacklogFigure(queues: readonly Rates[], detail: Figure['detail']): Figure {
  const rates = queues.map(({ fair }) => fair.perSecond)
  const micros = queues.map(({ fair }) => fair.microsEach)
  const byProcessorTime = Math.min(...micros) / Math.max(...micros)
  const name = 'claims on Postgres with 1,000 to 1,000,000 waiting: slowest against fastest'
  return figure(name, Math.min(...rates) / Math.max(...rates), 0.8, { ...detail, byProcessorTime })
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
    ...{ engines: ENGINES, maxOvertakes: MAX_OVERTAKES },
  })
}

const PLAIN = query(
  'bench.plainClaim',
  shape({ id: uuid(), workflow: text() }),
  postgresOnly(`
    UPDATE plain_job SET status = 'running', started_at = :now, lease_id = :leaseId, lease_until = :until, attempt = attempt + 1,
      version = version + 1
    WHERE id = (
      SELECT id FROM plain_job WHERE status = 'queued' AND pool = :pool ORDER BY priority DESC, seq LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING *, (SELECT workflow FROM job_text WHERE job_id = plain_job.id AND expires_at = plain_job.expires_at) AS workflow`),
)

// Ids ascend in submit order, as those of the service do: jobs that are claimed one after the other lie side by side in its indexes.
const SUBMITTED = `
  INSERT INTO job (id, account_id, pool, needs, status, priority, created_at, expires_at, needs_extra_data, input_count)
  SELECT (lpad(to_hex(1700000000000 + place), 12, '0') || '7' || substr(md5(place::text), 1, 3) || '8' ||
      substr(md5(place::text), 4, 15))::uuid,
    'account-' || (1 + place % $2), 'default', '${LANE}', 'queued', 0, 1, $3, 0, 0
  FROM generate_series(1, $1) AS place`

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
    needs: LANE,
  }
  const rest = { inputs: [], needsExtraData: false, sealedExtraData: null }
  await jobs.submit({ ...job, ...rest, createdAt: new Date(), expiresAt: new Date(Date.now() + DAY_MS) }, null)
  await admin.query('ALTER TABLE account_load ADD CHECK (running BETWEEN 0 AND max_running)')
  await admin.query('CREATE TABLE plain_job (LIKE job INCLUDING ALL)')
  await admin.query(`CREATE INDEX plain_next ON plain_job (pool, priority DESC, seq) WHERE status = 'queued'`)
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

const KINDS: readonly Kind[] = ['fair', 'plain']

/** Rounds go through all queues and kinds in turn, so that a slow minute of the machine affects all; the median round of each counts. */
async function measure(server: PostgresServer, queues: readonly OpenQueue[]): Promise<Rates[]> {
  const rounds = queues.map((): Record<Kind, Rate[]> => ({ fair: [], plain: [] }))
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const kind of KINDS) {
      for (const [index, { admin, claimers }] of queues.entries()) {
        const rate = await measureBurst(server, claimers[kind])
        // The first round prepares the statements.
        if (round > 0) rounds[index]?.[kind].push(rate)
        await giveBack(admin)
      }
    }
  }
  return rounds.map(({ fair, plain }) => ({
    fair: toMedian(fair),
    plain: toMedian(plain),
  }))
}

function toMedian(rates: readonly Rate[]): Rate {
  return {
    perSecond: median(rates.map(({ perSecond }) => perSecond)),
    microsEach: median(rates.map(({ microsEach }) => microsEach)),
  }
}

async function measureBurst(server: PostgresServer, claimers: readonly (() => Promise<unknown>)[]): Promise<Rate> {
  let left = BURST
  const [begun, serverBefore, before] = [performance.now(), readFamilyMicros(server.pid), process.cpuUsage()]
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
  const micros = readFamilyMicros(server.pid) - serverBefore + user + system
  return { perSecond: (BURST / elapsedMs) * 1000, microsEach: micros / BURST }
}

/** A claim that finds nothing waiting, one after the other. */
async function measureIdle({ admin, jobs }: OpenQueue): Promise<number> {
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
