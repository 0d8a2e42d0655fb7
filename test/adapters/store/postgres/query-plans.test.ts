<<<<<<< HEAD
/**
 * With many jobs and current statistics no statement of the API's side reads a growing table from end to end. What the server would
 * do is asked for the plans that connections keep: those that are made without the values.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, type QueryConfig } from 'pg'
import { openPostgresStore } from '../../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { JobFilter } from '../../../../src/domain/jobs/read/recorded-jobs.ts'
import { at, DAY_MS, keyClaim, newJobId, START, Tenant } from '../../../contracts/store-under-test.ts'
import { createTestDatabase } from '../../../support/postgres/test-database.ts'

const GROWING =
  /Seq Scan on (job|job_done|job_text|job_label|job_log|output|idempotency_key|account|account_load)(_\d+)?\b/

/** Thousands of accounts; forty of them have two hundred waiting jobs each, and five times as many ended ones. */
async function fill(sql: Client): Promise<void> {
  const start = START.getTime()
  const expiry = `${start} + 7 * 86400000 + (n % 8) * 86400000`
  const id = `('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid`
  await sql.query(
    `INSERT INTO account (id, max_queued, submitted) SELECT 'a' || n, 1000000, 1200 FROM generate_series(0, 4999) AS n`,
  )
  await sql.query(
    `INSERT INTO account_load (account_id, max_running, started) SELECT 'a' || n, 100, 1000 FROM generate_series(0, 4999) AS n`,
  )
  const job = (status: string) =>
    `${id}, n, 'a' || n % 40, 'default', ${status}, 0, 1, 1, ${start} + n, ${expiry}, 0, 0`
  await sql.query(`INSERT INTO job (id, seq, account_id, pool, status, priority, attempt, version, created_at, expires_at,
    needs_extra_data, input_count) SELECT ${job(`'queued'`)} FROM generate_series(1, 8000) AS n`)
  await sql.query(`INSERT INTO job_done (id, seq, account_id, pool, status, priority, attempt, version, created_at, expires_at,
    outputs_reused, outputs_replaced, completed_at, started_at, output_count)
    SELECT ${job(`CASE n % 3 WHEN 0 THEN 'failed' ELSE 'succeeded' END`)}, ${start} + n, ${start} + n, 1
    FROM generate_series(10001, 50000) AS n`)
  const everything = 'FROM generate_series(1, 50000) AS n WHERE n <= 8000 OR n > 10000'
  await sql.query(`INSERT INTO job_text (job_id, expires_at, workflow) SELECT ${id}, ${expiry}, '{}' ${everything}`)
  await sql.query(`INSERT INTO job_label (account_id, key, value, created_at, job_id, expires_at)
    SELECT 'a' || n % 40, 'k', 'v' || n % 7, ${start} + n, ${id}, ${expiry} ${everything}`)
  await sql.query(`INSERT INTO output (id, account_id, job_id, position, node_id, name, type, content_type, size_bytes, hash, file_path,
    created_at, expires_at) SELECT 'o' || n, 'a' || n % 40, ${id}, 0, '9', 'a.png', 'image', 'image/png', 1, 'h' || n, 'a.png', ${start},
    ${expiry} FROM generate_series(10001, 50000) AS n`)
  await sql.query(`INSERT INTO job_log (job_id, expires_at, text, truncated, captured_at, complete)
    SELECT ${id}, ${expiry}, 'x', false, ${start}, true FROM generate_series(10001, 50000) AS n`)
  await sql.query(`INSERT INTO idempotency_key (account_id, key, expires_at, job_id)
    SELECT 'a' || n % 40, 'key' || n, ${start} + n, ${id} FROM generate_series(1, 20000) AS n`)
  await sql.query('ANALYZE')
}

const EVERYTHING: JobFilter = {
  ...{ statuses: null, workflowId: null, outputType: null, limit: 100, offset: 0 },
  ...{ sortBy: 'created_at', order: 'desc' },
}

test('no statement of submits, reads, cancels and run records reads a whole table', async () => {
  await using stack = new AsyncDisposableStack()
  const { url } = stack.use(await createTestDatabase())
  const store = stack.use(await openPostgresStore({ url, migrates: false }))
  const sql = new Client({ connectionString: url })
  await sql.connect()
  stack.defer(() => sql.end())
  const tenant = new Tenant(store, 'a1', 'default')
  // Makes the ranges.
  await store.accounts.put({ id: 'maker', maxRunning: 1, maxQueued: 100 })
  const maker = new Tenant(store, 'maker', 'default')
  for (let day = 7; day < 15; day += 1) await maker.submit({ expiresAt: at(day * DAY_MS) })
  await fill(sql)

  const asked = new Map<string, QueryConfig>()
  const original = Client.prototype.query
  Client.prototype.query = function record(this: Client, ...args: unknown[]) {
    const [config] = args as [QueryConfig]
    if (config.name) asked.set(config.name, config)
    return Reflect.apply(original, this, args)
  } as typeof original
  try {
    const { accountId } = tenant
    const [live, done] = ['00000000-0000-4000-8000-000000000041', '00000000-0000-4000-8000-000000010001']
    await tenant.submit({ id: newJobId(), hasChosenId: true, metadata: { k: 'v1' } }, keyClaim('mine'))
    await tenant.submit({ priority: 3 })
    await Promise.all([tenant.find(live), tenant.find(done)])
    await store.jobs.findOwner(done)
    await store.jobs.findWorkflow(accountId, done, START)
    await store.jobs.findLog(accountId, done, START)
    const page = { statuses: null, metadata: {}, limit: 20, after: null, now: START }
    await store.jobs.list(accountId, page)
    await store.jobs.list(accountId, { ...page, statuses: ['running', 'succeeded'] })
    await store.jobs.list(accountId, { ...page, metadata: { k: 'v1' } })
    await store.jobs.cancel(accountId, live, START)
    await store.records.findRecord(accountId, done, START)
    await store.records.listLive(accountId, 100)
    await store.records.listHistory(accountId, { maxItems: 20, offset: null }, START)
    await store.records.selectJobs(accountId, EVERYTHING, START)
    await store.records.hideHistory(accountId, [done], START)
    await store.keys.findKey(accountId, 'key1', START)
    await store.keys.sweepKeys(at(-1))
    await store.jobs.expire(at(0), 10)
  } finally {
    Client.prototype.query = original
  }

  assert.ok(asked.size > 20, `${asked.size} statements`)
  await sql.query('SET plan_cache_mode = force_generic_plan')
  const walking: string[] = []
  for (const [name, { text, values = [] }] of asked) {
    await sql.query(`PREPARE asked AS ${text}`)
    const literals = values.map((value) => toLiteral(sql, value)).join(', ')
    const execute = values.length === 0 ? 'asked' : `asked(${literals})`
    const { rows } = await sql.query<{ 'QUERY PLAN': string }>(`EXPLAIN (COSTS OFF) EXECUTE ${execute}`)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    if (GROWING.test(plan)) walking.push(`${name}\n${plan}`)
    await sql.query('DEALLOCATE asked')
  }
  assert.deepEqual(walking, [])
})

function toLiteral(sql: Client, value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (!Array.isArray(value)) return sql.escapeLiteral(String(value))
  return sql.escapeLiteral(
    `{${value.map((entry) => (entry === null ? 'NULL' : JSON.stringify(String(entry)))).join(',')}}`,
  )
=======
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

const ROWS = 20_000
// What an operator asks for, sums over all accounts, and a removal that the service leaves to dropped partitions.
const MAY_WALK = [/^ledgerCheck\./, /^accounts\.(sum|compare_some)$/, /^jobs\.find_old$/]
// Rows of these are few, or each of them is wanted.
const SMALL_TABLES = ['meta', 'deployment', 'job_partition', 'schema_migration', 'node', 'singleton']
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
  'ledger_entry.available': '-i',
  'ledger_entry.granted': 'i',
  'ledger_entry.held': '0',
  'ledger_entry.charged': '0',
}

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
    await fillTables(client)
    await client.query('SET plan_cache_mode = force_generic_plan')
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
  for (const table of new Set(rows.map((row) => row.table))) {
    const columns = rows.filter((row) => row.table === table)
    const values = columns.map(({ column, type }) => FILLING[`${table}.${column}`] ?? toValue(column, type))
    const names = columns.map(({ column }) => column)
    await client.query(`INSERT INTO ${table} (${names}) SELECT ${values} FROM generate_series(0, ${ROWS - 1}) AS i`)
  }
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
  if (SMALL_TABLES.includes(table) || SMALL_INDEXES.includes(index)) return inside
  const isIndexWalk = /^(Index|Bitmap Index)/.test(type) && plan['Index Cond'] === undefined && !isLimited
  return type === 'Seq Scan' || isIndexWalk ? [`${type} ${table} ${index}`, ...inside] : inside
>>>>>>> main
}
