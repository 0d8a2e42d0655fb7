/** No statement walks a table that grows: every plan finds its rows through an index, whatever the backlog. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { silentLog } from '../../../../lib/log.ts'
import { openConnections } from '../../../../src/adapters/store/postgres/database/connections.ts'
import { openPartitions } from '../../../../src/adapters/store/postgres/database/partitions.ts'
import { listStatements, type Statement } from '../../../../src/adapters/store/postgres/database/statement.ts'
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Plan[]
}

// The recomputation of the ledger and of counters is asked for by an operator.
const MAY_WALK = [/^ledgerCheck\./]
// Rows of these are few, or each is wanted.
const SMALL_TABLES = new Set(['meta', 'deployment', 'job_partition', 'schema_migration', 'node', 'singleton'])
// Partial indexes over what is under way: never more than workers, or than calls at once.
const SMALL_INDEXES = new Set(['job_held', 'router_call_running'])

test('every statement finds its rows through an index', async () => {
  await using database = await createTestDatabase()
  // Opening a store loads every module, and with it every statement.
  await using _ = await openPostgresStore({ url: database.url, migrates: false })
  const statements = listStatements().filter(({ name }) => !MAY_WALK.some((each) => each.test(name)))
  assert.ok(statements.length > 50)
  await addPartitions(database.url)
  const client = new Client({ connectionString: database.url })
  await client.connect()
  try {
    // The tables are empty, so walking would be the best plan; forbidden, it remains only where no index serves.
    await client.query('SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off')
    const walks: string[] = []
    for (const statement of statements) {
      for (const walk of findWalks(await explain(client, statement), false)) walks.push(`${statement.name}: ${walk}`)
    }
    assert.deepEqual(walks, [])
  } finally {
    await client.end()
  }
})

/** Two ranges of what is kept by its expiry: of one alone the plan might not show that there are more. */
async function addPartitions(url: string): Promise<void> {
  await using connections = openConnections({ url, log: silentLog })
  const partitions = openPartitions(connections.chore)
  await partitions.ensure(0)
  await partitions.ensure(1e9)
}

async function explain(client: Client, { name, text }: Statement): Promise<Plan> {
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
  const values = count === 0 ? '' : `(${Array(count).fill('NULL').join()})`
  await client.query(`PREPARE asked AS ${text}`)
  const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE asked${values}`)
  await client.query('DEALLOCATE asked')
  const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN']
  assert.ok(plan !== undefined, name)
  return plan
}

/** An index may be walked from its beginning where a limit ends the walk. */
function findWalks(plan: Plan, isLimited: boolean): string[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '' } = plan
  const inside = (plan.Plans ?? []).flatMap((part) => findWalks(part, isLimited || type === 'Limit'))
  if (SMALL_TABLES.has(table) || SMALL_INDEXES.has(index)) return inside
  const isIndexWalk = /^(Index|Bitmap Index)/.test(type) && plan['Index Cond'] === undefined && !isLimited
  return type === 'Seq Scan' || isIndexWalk ? [`${type} ${table} ${index}`, ...inside] : inside
}
