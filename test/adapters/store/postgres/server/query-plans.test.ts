/** No statement walks a table that grows: every plan finds its rows through an index, whatever the backlog. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from 'pg'
import { silentLog } from '../../../../../lib/log.ts'
import { createClient } from '../../../../../lib/postgres/driver.ts'
import { openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { openPartitions } from '../../../../../src/adapters/store/postgres/database/partitions.ts'
import { openPostgresStore } from '../../../../../src/adapters/store/postgres/open-postgres-store.ts'
import { type Command, listStatements } from '../../../../../src/adapters/store/statements/statement.ts'
import { createTestDatabase } from '../../../../support/postgres/test-database.ts'

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Plan[]
}

const ROWS = 20_000
// What an operator asks for, sums over all accounts, and a removal that the service leaves to dropped partitions.
const MAY_WALK = [
  // Those of other tests that share this process, and of verify and doctor, which an operator starts.
  /^verify\./,
  /^inspect\./,
  /^test\./,
  ...[/^ledgerCheck\./, /^ledger\.charges\.\w+\.all$/, /^accounts\.(sum|compare_some)$/, /^jobs\.find_old$/],
  // Over deployments that are up, and when a release is removed or folders of releases are tidied.
  /^released\.(active|usesOf|used)$/,
  // Once an hour, over one row for each account and pool of the last day.
  /^shares\.sweep$/,
  // The recipes of all accounts, and the accounts themselves.
  /^search\.(all_recipes\w*|labelled_accounts)$/,
  // Those that are at work, in an index of their own: an account has few at a time.
  /^bulk\.countWorking$/,
  // Every release that has a folder.
  /^artifacts\.listReady$/,
]
// Rows of these are few, or each of them is wanted.
const SMALL_TABLES = [
  'meta',
  'deployment',
  'job_partition',
  'schema_migration',
  'node',
  'singleton',
  'engine',
  'engine_catalog',
  'builder',
  'pg_namespace',
]
// Partial indexes over what is under way: never more than workers, or than calls at once.
const SMALL_INDEXES = ['job_held', 'router_call_running']
// In place of numbers and texts that are all different.
const FILLING: Readonly<Record<string, string>> = {
  'job.status': `CASE WHEN i % 1000 = 0 THEN 'running' ELSE 'queued' END`,
  'job.pool': `CASE WHEN i % 2 = 0 THEN 'default' ELSE 'pool ' || i % 10 END`,
  'job.needs': `'lane ' || i % 10`,
  'job.account_id': `'account ' || i % 2000`,
  'job_done.status': `'succeeded'`,
  'job_done.account_id': `'account ' || i % 2000`,
  'router_call.state': `CASE WHEN i % 10 = 0 THEN 'waiting' WHEN i % 100 = 1 THEN 'running' ELSE 'done' END`,
  'endpoint_share.digest': `convert_to(i::text, 'UTF8')`,
  'build_artifact.status': `CASE WHEN i % 100 = 0 THEN 'queued' WHEN i % 1000 = 1 THEN 'building' ELSE 'ready' END`,
  'ledger_entry.kind': `CASE WHEN i % 2 = 0 THEN 'hold' ELSE 'settle' END`,
  'ledger_entry.available': '-i',
  'ledger_entry.granted': 'i',
  'ledger_entry.held': '0',
  'ledger_entry.charged': '0',
}

test('every statement finds its rows through an index', async () => {
  await using database = await createTestDatabase()
  // Opening a store loads every module, and with it every statement.
  await using _ = await openPostgresStore({ url: database.url, migrates: false })
  const statements = listStatements().filter(
    ({ name, compiled }) => compiled.postgres !== null && !MAY_WALK.some((each) => each.test(name)),
  )
  assert.ok(statements.length > 50)
  await addPartitions(database.url)
  const client = createClient({ url: database.url })
  await client.connect()
  try {
    await fillTables(client)
    await client.query('SET plan_cache_mode = force_generic_plan')
    const walks: string[] = []
    for (const statement of statements) {
      for (const walk of findWalks(await explain(client, statement), false)) walks.push(`${statement.name}: ${walk}`)
    }
    assert.deepEqual(walks, [])
    // Asked twice a second: the jobs of an account that wait in other pools and lanes are not to be walked for it.
    const outwaited = statements.filter(({ name }) => name.startsWith('lanes.find_outwaited'))
    assert.equal(outwaited.length, 2)
    for (const statement of outwaited) {
      const conditions = findConditions(await explain(client, statement)).filter(([table]) => table === 'job')
      assert.ok(conditions.length >= 2, statement.name)
      for (const [, text] of conditions) assert.match(text, /^\(+pool = /, statement.name)
      if (statement.name.endsWith('_in')) for (const [, text] of conditions) assert.match(text, /needs = /)
    }
    // Where all jobs share a value, one that none has must be looked for by its index all the same, and not by time.
    await client.query(
      `UPDATE job_done SET engine_id = 'common', title = 'common', recipe = 'common'; ANALYZE job_done`,
    )
    for (const statement of statements) {
      const [, by] = /^search\.(?:all_)?(engine|title|recipe)_(?:newest|oldest)$/.exec(statement.name) ?? []
      if (by === undefined) continue
      const conditions = findConditions(await explain(client, statement)).filter(([table]) => /^job_done/.test(table))
      assert.ok(conditions.length > 0 && conditions.every(([, text]) => text.includes(by)), statement.name)
    }
  } finally {
    await client.end()
  }
})

/** Two ranges of what is kept by its expiry: of one alone the plan might not show that there are more. */
async function addPartitions(url: string): Promise<void> {
  await using connections = openConnections({ url, log: silentLog })
  const partitions = openPartitions(connections.chore, ROWS / 2)
  await partitions.ensure(0)
  await partitions.ensure(ROWS / 2)
}

/** Of an empty table a walk is the best plan. */
async function fillTables(client: Client): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string; type: string }>(
    `SELECT relname AS table, attname AS column, format_type(atttypid, NULL) AS type
     FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND attnum > 0 AND NOT attisdropped AND NOT relname = ANY($1)
     ORDER BY relname, attnum`,
    [SMALL_TABLES],
  )
  // What is filled in means nothing: no trigger is to read it.
  await client.query('SET session_replication_role = replica')
  for (const table of new Set(rows.map((row) => row.table))) {
    const columns = rows.filter((row) => row.table === table)
    const values = columns.map(({ column, type }) => FILLING[`${table}.${column}`] ?? toValue(column, type))
    const names = columns.map(({ column }) => column)
    await client.query(`INSERT INTO ${table} (${names}) SELECT ${values} FROM generate_series(0, ${ROWS - 1}) AS i`)
  }
  await client.query('SET session_replication_role = DEFAULT')
  await client.query('ANALYZE')
}

function toValue(column: string, type: string): string {
  if (column.endsWith('_id') && type === 'text') return `'id ' || i`
  if (type === 'uuid') return `lpad(to_hex(i), 32, '0')::uuid`
  if (type === 'boolean') return 'i % 2 = 0'
  if (type === 'bytea') return `''::bytea`
  if (type === 'smallint') return '(i % 4)::smallint'
  return type === 'text' ? `'text ' || i` : 'i'
}

async function explain(client: Client, { name, compiled: { postgres } }: Command): Promise<Plan> {
  const { text } = postgres ?? assert.fail(`${name} is asked of Postgres`)
  const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
  const values = count === 0 ? '' : `(${Array(count).fill('NULL').join()})`
  await client.query(`PREPARE asked AS ${text}`)
  const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE asked${values}`)
  await client.query('DEALLOCATE asked')
  const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN']
  assert.ok(plan !== undefined, name)
  return plan
}

/** By table, what its rows are found by. */
function findConditions(plan: Plan): (readonly [table: string, condition: string])[] {
  const inside = (plan.Plans ?? []).flatMap(findConditions)
  const condition = plan['Index Cond']
  return condition === undefined ? inside : [[plan['Relation Name'] ?? '', condition], ...inside]
}

/** An index may be walked from its beginning where a limit ends the walk. */
function findWalks(plan: Plan, isLimited: boolean): string[] {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '' } = plan
  const inside = (plan.Plans ?? []).flatMap((part) => findWalks(part, isLimited || type === 'Limit'))
  if (SMALL_TABLES.includes(table) || SMALL_INDEXES.includes(index)) return inside
  const isIndexWalk = /^(Index|Bitmap Index)/.test(type) && plan['Index Cond'] === undefined && !isLimited
  return type === 'Seq Scan' || isIndexWalk ? [`${type} ${table} ${index}`, ...inside] : inside
}
