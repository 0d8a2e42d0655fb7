/** Reads counters of several processes and of their Postgres server, and says what lies between two readings. */
import { readdirSync, readFileSync } from 'node:fs'
import { Client } from 'pg'
import type { PostgresServer } from '../../test/support/postgres/postgres-server.ts'
import type { SqlCounts } from '../kit/count-sql.ts'
import type { ServerChild } from '../kit/server-child.ts'
import type { Cost } from './costs.ts'

interface Reading extends Omit<Cost, 'processSeconds'> {
  readonly atMs: number
}

const TICK_MICROS = 10_000

export async function measureSpent(
  { nodes, server }: { readonly nodes: readonly ServerChild[]; readonly server: PostgresServer },
  work: () => Promise<void>,
): Promise<Cost> {
  const before = await readAll(nodes, server)
  await work()
  const after = await readAll(nodes, server)
  return {
    nodeMicros: after.nodeMicros - before.nodeMicros,
    postgresMicros: after.postgresMicros - before.postgresMicros,
    statements: after.statements - before.statements,
    notifies: after.notifies - before.notifies,
    logBytes: after.logBytes - before.logBytes,
    processSeconds: ((after.atMs - before.atMs) / 1000) * nodes.length,
  }
}

export function perOne(total: Cost, count: number): Cost {
  return {
    nodeMicros: total.nodeMicros / count,
    postgresMicros: total.postgresMicros / count,
    statements: total.statements / count,
    notifies: total.notifies / count,
    logBytes: total.logBytes / count,
    processSeconds: total.processSeconds / count,
  }
}

async function readAll(nodes: readonly ServerChild[], server: PostgresServer): Promise<Reading> {
  const [usages, counts] = await Promise.all([
    Promise.all(nodes.map((node) => node.usage())),
    Promise.all(nodes.map((node) => node.ask<SqlCounts>('sqlCounts'))),
  ])
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    atMs: performance.now(),
    nodeMicros: sum(usages.map(({ cpuMicros }) => cpuMicros)),
    postgresMicros: readServerMicros(server.pid),
    statements: sum(counts.map(({ statements }) => statements)),
    notifies: sum(counts.map(({ notifies }) => notifies)),
    logBytes: await readLogBytes(server.url),
  }
}

async function readLogBytes(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ n: string }>(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS n`)
  await client.end()
  return Number(rows[0].n)
}

/** The processor time of the server and of its processes, the ended ones included; 0 where the system does not tell. */
function readServerMicros(pid: number): number {
  if (process.platform !== 'linux') return 0
  let ticks = 0
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const fields = readProcess(name)
    // The server's own line also holds the time of those of its processes that have ended.
    if (Number(name) === pid) ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    else if (Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * TICK_MICROS
}

/** What the system tells of a process behind its name; nothing when it has just ended. */
function readProcess(pid: string): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
