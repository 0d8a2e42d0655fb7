/**
 * Several nodes on one Postgres under mixed load, while nodes are killed, connections are cut or the database itself crashes; then
 * everything that was acknowledged is looked up, and the books must balance.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type PostgresServer, startPostgres } from '../../support/postgres/postgres-server.ts'
import { createDatabaseOn } from '../../support/postgres/test-database.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { checkBooks, checkCluster, withClient } from './cluster-check.ts'
import { type Acknowledged, newAcknowledged, startClusterLoad } from './cluster-load.ts'
import { type Cluster, openCluster } from './cluster-nodes.ts'
import { openCountingProvider } from './counting-provider.ts'

export interface TrialOptions {
  readonly nodes: number
  readonly clients: number
  readonly seed: number
  /** The load goes on until so many jobs are acknowledged and all faults have happened. */
  readonly jobs: number
  readonly faults: readonly Fault[]
  /** Between two faults. */
  readonly everyMs: number
  readonly report?: (line: string) => void
}

/** `kill`: a node dies and is started again. `cut`: some connections end. `crash`: Postgres is stopped like by a power cut. */
export type Fault = 'kill' | 'cut' | 'crash'

export async function runTrial(options: TrialOptions): Promise<Acknowledged> {
  const { nodes, clients, seed, jobs, faults, everyMs, report = () => {} } = options
  const random = seededRandom(seed)
  await using server = await startPostgres({ isDurable: true })
  await using database = await createDatabaseOn(server.url)
  await using provider = await openCountingProvider()
  await using cluster = await openCluster({ databaseUrl: database.url, nodes, providerUrl: provider.url })
  const seen = newAcknowledged()
  const load = startClusterLoad({ cluster, seen, random, clients })
  let loadError: unknown = null
  load.ended.catch((error) => {
    loadError = error
  })
  const said = (what: string) =>
    report(`${what}: ${seen.jobs.length} jobs, ${seen.assets.length} uploads, ${seen.calls.length} calls acknowledged`)
  for (const [index, fault] of faults.entries()) {
    await pause(everyMs)
    await FAULTS[fault]({ cluster, server, random, nodes })
    if (loadError !== null) throw loadError
    said(`${index + 1} of ${faults.length}, ${fault}`)
  }
  while (seen.jobs.length < jobs && loadError === null) await pause(100)
  await load.stop()
  said('the load is over')
  await checkCluster(cluster, seen)
  await cluster.stop()
  await checkBooks(cluster, seen, provider.made)
  return seen
}

interface FaultParts {
  readonly cluster: Cluster
  readonly server: PostgresServer
  readonly random: SeededRandom
  readonly nodes: number
}

const FAULTS: Readonly<Record<Fault, (parts: FaultParts) => Promise<void>>> = {
  async kill({ cluster, random, nodes }) {
    const index = random.between(0, nodes - 1)
    await cluster.kill(index)
    await cluster.start(index)
  },
  async cut({ cluster }) {
    await withClient(cluster.databaseUrl, (client) =>
      client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5`,
      ),
    )
  },
  async crash({ server }) {
    await server.stop('immediate')
    await server.start()
  },
}
