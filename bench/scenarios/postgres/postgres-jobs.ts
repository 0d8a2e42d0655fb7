/**
 * What a whole job costs Postgres: its submit, the claim, one write of progress, one output, the end with its record and log. Bytes
 * of the log, statements (begin and commit included) and processor time, step by step: one job at a time, where nothing can be
 * gathered, and 32 at a time. Pages that are written whole after a checkpoint are not counted: they depend on how often one comes.
 */
import { randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { createUuidV7 } from '../../../lib/ids.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { Progress } from '../../../src/domain/jobs/job.ts'
import type { JobStore, Lease } from '../../../src/domain/jobs/job-store.ts'
import { type PostgresServer, startPostgres } from '../../../test/support/postgres/postgres-server.ts'
import type { Figure } from '../../kit/figure.ts'
import { readFamilyMicros } from '../../kit/processor-time.ts'
import { countStatements, readLogPosition } from '../../kit/server-cost.ts'

const ACCOUNTS = 10
const JOBS = 640
const DAY_MS = 86_400_000
// As the engines of the service offer: it has lanes wherever several processes share a database.
const LANE = 'lane'
const ENGINES = [{ engineId: 'engine', lanes: [{ lane: LANE, rank: 0 }] }] as const
const WORKFLOW = JSON.stringify({ 1: { class_type: 'Text', inputs: { text: 'some words of a prompt, '.repeat(80) } } })
const PROGRESS: Progress = {
  ...{ value: 0.5, nodesDone: 1, nodesTotal: 2, currentNode: '3', currentNodeClass: 'KSampler' },
  ...{ step: 10, steps: 20, message: null },
}

const newJobId = createUuidV7(Date.now)

interface Cost {
  readonly logBytes: number
  readonly statements: number
  readonly serverMicros: number
}

type Step = (leases: Map<number, Lease>, index: number) => Promise<unknown>
type StepName = 'submit' | 'claim' | 'progress' | 'output' | 'end'

export async function postgresJobs(): Promise<Figure[]> {
  await using server = await startPostgres({
    isDurable: true,
    settings: { max_wal_size: '8GB', full_page_writes: 'off', autovacuum: 'off' },
  })
  await using store = await openPostgresStore({ url: server.url })
  for (let index = 0; index < ACCOUNTS; index += 1) {
    await store.accounts.put({ id: `account-${index}`, maxRunning: JOBS, maxQueued: 100_000 })
  }
  const admin = createClient({ url: server.url })
  await admin.connect()
  try {
    const steps = createSteps(store.jobs)
    // Prepares the statements.
    await runSteps({ server, admin }, steps, 32)
    const together = await runSteps({ server, admin }, steps, 32)
    const single = await runSteps({ server, admin }, steps, 1)
    return [toFigures(single, 'one at a time', 26), toFigures(together, '32 at a time', 2)].flat()
  } finally {
    await admin.end()
  }
}

function createSteps(jobs: JobStore): Record<StepName, Step> {
  return {
    submit: (_, index) => {
      const createdAt = new Date()
      return jobs.submit(
        {
          ...{ id: newJobId(), accountId: `account-${index % ACCOUNTS}`, pool: 'default', priority: 0, metadata: {} },
          ...{ createdAt, expiresAt: new Date(createdAt.getTime() + DAY_MS), workflow: WORKFLOW, inputs: [] },
          ...{ needsExtraData: false, sealedExtraData: null, needs: LANE },
        },
        { key: randomUUID(), claimedAt: createdAt, expiresAt: new Date(createdAt.getTime() + DAY_MS) },
      )
    },
    claim: async (leases, index) => {
      const now = new Date()
      const claim = await jobs.claim({
        ...{ pool: 'default', workerId: 'bench', leaseId: randomUUID(), now, maxOvertakes: 64 },
        ...{ leaseUntil: new Date(now.getTime() + 30_000), engines: ENGINES },
      })
      if (claim === null) throw new Error('There is a job for every claim.')
      leases.set(index, { jobId: claim.job.id, leaseId: claim.leaseId })
    },
    progress: (leases, index) => jobs.commit(leaseOf(leases, index), { progress: PROGRESS }),
    output: (leases, index) => {
      const output = {
        ...{ assetId: randomUUID(), nodeId: '9', name: `atelier_${index}_.png`, type: 'image' as const },
        ...{ contentType: 'image/png', sizeBytes: 1_000_000, hash: randomUUID().replaceAll('-', '').repeat(2) },
      }
      return jobs.commit(leaseOf(leases, index), { outputs: [output], outputsReused: false })
    },
    end: (leases, index) => {
      const at = new Date()
      const log = { text: 'a line of a log\n'.repeat(10), truncated: false, capturedAt: at, complete: true }
      const finish = { status: 'succeeded', from: ['running', 'canceling'], at, error: null } as const
      return jobs.commit(leaseOf(leases, index), { progress: { ...PROGRESS, value: 1 }, log, finish })
    },
  }
}

function leaseOf(leases: Map<number, Lease>, index: number): Lease {
  const lease = leases.get(index)
  if (lease === undefined) throw new Error('The job was claimed.')
  return lease
}

interface Machine {
  readonly server: PostgresServer
  readonly admin: Client
}

/** All jobs take a step before the first takes the next one. */
async function runSteps(
  { server, admin }: Machine,
  steps: Record<StepName, Step>,
  atOnce: number,
): Promise<Record<StepName, Cost>> {
  const leases = new Map<number, Lease>()
  const costs: Partial<Record<StepName, Cost>> = {}
  for (const [name, step] of Object.entries(steps) as [StepName, Step][]) {
    const [log, micros] = [await readLogPosition(admin), readFamilyMicros(server.pid)]
    const statements = countStatements()
    let next = 0
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (next < JOBS) {
          const index = next
          next += 1
          await step(leases, index)
        }
      }),
    )
    costs[name] = {
      statements: (countStatements() - statements) / JOBS,
      logBytes: ((await readLogPosition(admin)) - log) / JOBS,
      serverMicros: (readFamilyMicros(server.pid) - micros) / JOBS,
    }
  }
  return costs as Record<StepName, Cost>
}

function toFigures(costs: Record<StepName, Cost>, how: string, maxStatements: number): Figure[] {
  const sum = (of: keyof Cost) => Object.values(costs).reduce((total, cost) => total + cost[of], 0)
  const shared = { direction: 'at_most', detail: { costs, serverMicros: sum('serverMicros') } } as const
  return [
    {
      ...{ name: `Postgres: log written for a whole job with a graph of 2 kB and one output, ${how}`, unit: 'bytes' },
      ...{ measured: sum('logBytes'), bar: 9000, ...shared },
    },
    {
      ...{ name: `Postgres: statements for a whole job, ${how}`, unit: 'each' },
      ...{ measured: sum('statements'), bar: maxStatements, ...shared },
    },
  ]
}
