/**
 * Durable submits to Postgres, 64 at a time for 100 accounts, half of them with an idempotency key, against bare inserts of the same
 * rows by the same client library: pipelined one by one, and as one statement for each table. The bare ones look nothing up, lock
 * nothing and count nothing; all of them share their commits in the same way.
 */
import type { Client } from 'pg'
import { createUuidV7, newUuidV4 } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openConnections } from '../../../src/adapters/store/postgres/database/connections.ts'
import { createGather } from '../../../src/adapters/store/postgres/database/gather.ts'
import { openPartitions } from '../../../src/adapters/store/postgres/database/partitions.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { NewJob } from '../../../src/domain/jobs/job-store.ts'
import { type PostgresServer, startPostgres } from '../../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../../kit/figure.ts'
import { readFamilyMicros } from '../../kit/processor-time.ts'
import { countStatements, readLogPosition } from '../../kit/server-cost.ts'

const AT_ONCE = 64
const ACCOUNTS = 100
const ROUND_MS = 3000
const ROUNDS = 3
const DAY_MS = 86_400_000
const WORKFLOW = JSON.stringify({ 1: { class_type: 'Text', inputs: { text: 'some words of a prompt, '.repeat(80) } } })

interface Submitted {
  readonly job: NewJob
  readonly key: string | null
}

interface Measured {
  readonly perSecond: number
  readonly clientMicrosEach: number
  readonly serverMicrosEach: number
  readonly walBytesEach: number
  readonly statementsEach: number
}

const newJobId = createUuidV7(Date.now)

function newSubmit(index: number): Submitted {
  const createdAt = new Date()
  const job: NewJob = {
    ...{ id: newJobId(), accountId: `account-${index % ACCOUNTS}`, pool: 'default', priority: 0, metadata: {} },
    ...{ createdAt, expiresAt: new Date(createdAt.getTime() + 7 * DAY_MS), workflow: WORKFLOW, inputs: [] },
    ...{ needsExtraData: false, sealedExtraData: null, needs: '' },
  }
  return { job, key: index % 2 === 0 ? newUuidV4() : null }
}

export async function postgresSubmits(): Promise<Figure[]> {
  await using server = await startPostgres({ isDurable: true, settings: { max_wal_size: '8GB' } })
  const { url } = server
  await using store = await openPostgresStore({ url })
  for (let index = 0; index < ACCOUNTS; index += 1) {
    await store.accounts.put({ id: `account-${index}`, maxRunning: 10, maxQueued: 100_000_000 })
  }
  await using connections = openConnections({ url, log: silentLog })
  const partitions = openPartitions(connections.chore)
  for (const day of [7, 8]) await partitions.ensure(Date.now() + day * DAY_MS)
  const bare = await openBareInserts(url)
  const kinds: Record<string, (submit: Submitted) => Promise<unknown>> = {
    oneByOne: bare.oneByOne,
    perTable: bare.perTable,
    submits: ({ job, key }) => store.jobs.submit(job, key === null ? null : toClaim(job, key)),
  }
  const results = new Map<string, Measured[]>(Object.keys(kinds).map((kind) => [kind, []]))
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [kind, run] of Object.entries(kinds)) {
      const measured = await measure(server, run)
      // The first round warms up.
      if (round > 0) results.get(kind)?.push(measured)
    }
  }
  await bare.close()
  const [oneByOne, perTable, submits] = ['oneByOne', 'perTable', 'submits'].map((kind) =>
    medianOf(results.get(kind) ?? []),
  )
  const detail = { oneByOne, perTable, submits }
  return [
    {
      name: 'Postgres: durable submits against bare pipelined inserts of the same rows',
      measured: submits.perSecond / oneByOne.perSecond,
      ...{ unit: '%', bar: 0.5, direction: 'at_least', detail },
    },
    {
      name: 'Postgres: durable submits against one bare insert per table and batch',
      measured: submits.perSecond / perTable.perSecond,
      ...{ unit: '%', bar: 0.4, direction: 'at_least', detail },
    },
    {
      name: 'Postgres: log written for a submit with a graph of 2 kB',
      measured: submits.walBytesEach,
      ...{ unit: 'bytes', bar: 4000, direction: 'at_most', detail },
    },
    {
      name: 'Postgres: statements for a submit, 64 at a time',
      measured: submits.statementsEach,
      ...{ unit: 'each', bar: 1, direction: 'at_most', detail },
    },
  ]
}

function toClaim({ createdAt }: NewJob, key: string) {
  return { key, claimedAt: createdAt, expiresAt: new Date(createdAt.getTime() + DAY_MS) }
}

async function measure(server: PostgresServer, run: (submit: Submitted) => Promise<unknown>): Promise<Measured> {
  const sql = createClient({ url: server.url })
  await sql.connect()
  const readLog = () => readLogPosition(sql)
  await sql.query('CHECKPOINT')
  // The pages that the first changes after a checkpoint write whole are not counted.
  await runFor(ROUND_MS / 3, run)
  const [logBefore, cpuBefore, serverBefore, statementsBefore] = [
    await readLog(),
    process.cpuUsage(),
    readFamilyMicros(server.pid),
    countStatements(),
  ]
  const start = performance.now()
  const count = await runFor(ROUND_MS, run)
  const elapsedMs = performance.now() - start
  const cpu = process.cpuUsage(cpuBefore)
  const statementsSent = countStatements() - statementsBefore
  const measured = {
    perSecond: (count / elapsedMs) * 1000,
    clientMicrosEach: (cpu.user + cpu.system) / count,
    serverMicrosEach: (readFamilyMicros(server.pid) - serverBefore) / count,
    walBytesEach: ((await readLog()) - logBefore) / count,
    statementsEach: statementsSent / count,
  }
  await sql.end()
  return measured
}

async function runFor(durationMs: number, run: (submit: Submitted) => Promise<unknown>): Promise<number> {
  const end = performance.now() + durationMs
  let count = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (performance.now() < end) await run(newSubmit(count++))
    }),
  )
  return count
}

function medianOf(results: readonly Measured[]): Measured {
  return results.toSorted((a, b) => a.perSecond - b.perSecond)[Math.floor(results.length / 2)]
}

const JOB_COLUMNS =
  'id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count, needs'
const INSERTS = {
  job: `INSERT INTO job (${JOB_COLUMNS}) VALUES ($1, $2, 'default', 'queued', 0, $3, $4, 0, 0, '')`,
  text: 'INSERT INTO job_text (job_id, expires_at, workflow) VALUES ($1, $2, $3)',
  key: 'INSERT INTO idempotency_key (account_id, key, expires_at, job_id) VALUES ($1, $2, $3, $4)',
  jobs: `INSERT INTO job (${JOB_COLUMNS}) SELECT id, account_id, 'default', 'queued', 0, created_at, expires_at, 0, 0, ''
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) AS n(id, account_id, created_at, expires_at)`,
  texts:
    'INSERT INTO job_text (job_id, expires_at, workflow) SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[])',
  keys: `INSERT INTO idempotency_key (account_id, key, expires_at, job_id)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::uuid[])`,
} as const

async function openBareInserts(url: string) {
  const free: Client[] = []
  for (let index = 0; index < 2; index += 1) {
    const client = createClient({ url }, { pipeline: true })
    await client.connect()
    free.push(client)
  }
  const insert = (client: Client, name: keyof typeof INSERTS, values: readonly unknown[]) =>
    client.query({ name, text: INSERTS[name], values: [...values] })

  function gathered(write: (client: Client, submits: readonly Submitted[]) => Promise<unknown>[]) {
    return createGather<Submitted, null>({
      async run(submits) {
        const client = free.pop() as Client
        await Promise.all([client.query('BEGIN'), ...write(client, submits), client.query('COMMIT')])
        free.push(client)
        return submits.map(() => null)
      },
      ...{ maxItems: 256, maxRunning: 2 },
    })
  }

  return {
    oneByOne: gathered((client, submits) =>
      submits.flatMap(({ job: { id, accountId, createdAt, expiresAt, workflow }, key }) => [
        insert(client, 'job', [id, accountId, createdAt.getTime(), expiresAt.getTime()]),
        insert(client, 'text', [id, expiresAt.getTime(), workflow]),
        ...(key === null ? [] : [insert(client, 'key', [accountId, key, expiresAt.getTime(), id])]),
      ]),
    ),
    perTable: gathered((client, submits) => {
      const jobs = submits.map(({ job }) => job)
      const keyed = submits.filter(({ key }) => key !== null)
      const [ids, ends] = [jobs.map(({ id }) => id), jobs.map(({ expiresAt }) => expiresAt.getTime())]
      return [
        insert(client, 'jobs', [
          ids,
          jobs.map(({ accountId }) => accountId),
          jobs.map(({ createdAt }) => createdAt.getTime()),
          ends,
        ]),
        insert(client, 'texts', [ids, ends, jobs.map(({ workflow }) => workflow)]),
        insert(client, 'keys', [
          keyed.map(({ job }) => job.accountId),
          keyed.map(({ key }) => key),
          keyed.map(({ job }) => job.expiresAt.getTime()),
          keyed.map(({ job }) => job.id),
        ]),
      ]
    }),
    async close() {
      for (const client of free) await client.end()
    },
  }
}
