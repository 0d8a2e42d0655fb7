/** Reads counters of several processes and of their Postgres server, and says what lies between two readings. */
import { createClient } from '../../lib/postgres/driver.ts'
import type { PostgresServer } from '../../test/support/postgres/postgres-server.ts'
import { readFamilyMicros } from '../kit/processor-time.ts'
import type { ServerChild } from '../kit/server-child.ts'
import { readLogPosition } from '../kit/server-cost.ts'
import type { Cost } from './costs.ts'

interface Reading extends Omit<Cost, 'processSeconds'> {
  readonly atMs: number
}

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
    Promise.all(nodes.map((node) => node.ask<Pick<Cost, 'statements' | 'notifies'>>('sqlCounts'))),
  ])
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    atMs: performance.now(),
    nodeMicros: sum(usages.map(({ cpuMicros }) => cpuMicros)),
    postgresMicros: readFamilyMicros(server.pid),
    statements: sum(counts.map(({ statements }) => statements)),
    notifies: sum(counts.map(({ notifies }) => notifies)),
    logBytes: await readLogBytes(server.url),
  }
}

async function readLogBytes(url: string): Promise<number> {
  const client = createClient({ url })
  await client.connect()
  const position = await readLogPosition(client)
  await client.end()
  return position
}
