/**
 * What the tables need beside the server's own autovacuum, whose workers may sit in one large table for hours, and which never
 * renews the statistics of a partitioned parent: without those, plans fall back to reading every partition. Each step is one
 * statement with the time limit of chores, passes over a table that somebody else works on, and harms nobody when it runs twice.
 */
import type { StoreUpkeep } from '../../../../domain/store.ts'
import { command, postgresOnly, query } from '../../statements/statement.ts'
import { integer, shape, text } from '../../tables/table.ts'
import type { Connected } from './connections.ts'
import { PARTITIONED_TABLES, type Partitions } from './partitions.ts'

/** Small, and changed with every job. */
const BUSY_TABLES = ['job', 'account_load', 'account'] as const
const MAX_DEAD = 1000
// A vacuum reads all indexes of its table: with a long queue it has to be worth that.
const MAX_DEAD_SHARE = 0.02

const DEAD = query(
  'upkeep.dead',
  shape({ table: text(), dead: integer(), live: integer() }),
  postgresOnly(`SELECT relname::text AS table, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
    WHERE schemaname = current_schema() AND relname = ANY(:tables::text[]) ORDER BY relname`),
)
// Transactions, prepared ones and replicas: whichever holds back a vacuum furthest.
const OLDEST = query(
  'upkeep.oldest_xmin',
  shape({ age: integer() }),
  postgresOnly(`SELECT greatest(0,
     (SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()),
     (SELECT max(age(transaction)) FROM pg_prepared_xacts),
     (SELECT max(greatest(age(xmin), age(catalog_xmin))) FROM pg_replication_slots))::bigint AS age`),
)
const LEAD = query(
  'upkeep.partition_lead',
  shape({ leadMs: integer() }),
  postgresOnly(`SELECT greatest(0, max(upper) - (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS lead_ms
    FROM job_partition`),
)

interface UpkeepParts {
  readonly read: Connected
  readonly chore: Connected
  readonly partitions: Pick<Partitions, 'prepare'>
}

export function createUpkeep({ read, chore, partitions }: UpkeepParts): StoreUpkeep {
  // Cannot be prepared by name, and must not run inside a transaction.
  const run = (text: string) => chore.run(command('', postgresOnly(text)))
  return {
    async reclaim(signal) {
      const tables = (await read.all(DEAD, { tables: BUSY_TABLES }))
        .filter(({ dead, live }) => dead > Math.max(MAX_DEAD, live * MAX_DEAD_SHARE))
        .map(({ table }) => table)
      const reclaimed: string[] = []
      for (const table of tables) {
        if (signal?.aborted) break
        // Cutting off the end of the file would lock everybody out for a moment.
        await run(`VACUUM (SKIP_LOCKED, TRUNCATE false) ${table}`)
        reclaimed.push(table)
      }
      return reclaimed
    },
    async renewStatistics(signal) {
      for (const table of PARTITIONED_TABLES) {
        if (signal?.aborted) return
        await run(`ANALYZE (SKIP_LOCKED) ${table}`)
      }
    },
    prepareExpiries: ({ from, to }) => partitions.prepare(from.getTime(), to.getTime()),
    async health() {
      const [dead, oldest, lead] = await Promise.all([
        read.all(DEAD, { tables: BUSY_TABLES }),
        read.get(OLDEST),
        read.get(LEAD),
      ])
      return {
        deadRows: Object.fromEntries(dead.map(({ table, dead }) => [table, dead])),
        oldestTransactionAge: oldest?.age ?? 0,
        partitionLeadMs: lead?.leadMs ?? 0,
      }
    },
  }
}
