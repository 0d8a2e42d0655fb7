/**
 * Databases for tests. One server serves a whole run of the tests (lend-postgres.ts); a file that is run with `node --test` starts one
 * for itself. The schema is made once, as a template that each database is a copy of.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Client } from 'pg'
import { systemClock } from '../../../lib/clock.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { loadMigrations } from '../../../src/adapters/store/migration-files.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../../../src/adapters/store/postgres/database/migrations.ts'
import { openSession } from '../../../src/adapters/store/postgres/database/session.ts'
import { askForPostgres } from './lend-postgres.ts'
import { type PostgresServer, startPostgres } from './postgres-server.ts'

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
}

interface TestServer {
  readonly url: string
  readonly template: string
}

let serverOfRun: Promise<TestServer> | null = null
let ownServer: PostgresServer | null = null
const endOwnServer = async () => ownServer?.[Symbol.asyncDispose]()
// Not a hook of the test runner: it would belong to whichever test loaded this first, and benches use these databases too.
process.once('beforeExit', endOwnServer)

/** An empty database with the schema. */
export async function createTestDatabase(): Promise<TestDatabase> {
  serverOfRun ??= findServer()
  const { url, template } = await serverOfRun
  return createDatabase(url, `TEMPLATE ${template}`)
}

/** A database without any table. */
export async function createBareDatabase(): Promise<TestDatabase> {
  serverOfRun ??= findServer()
  return createDatabase((await serverOfRun).url, '')
}

/** A database without any table, on a server of the test's own. */
export function createDatabaseOn(serverUrl: string): Promise<TestDatabase> {
  return createDatabase(serverUrl, '')
}

/** The database of this name with the schema, made when it is first asked for. */
export async function ensureNamedDatabase(name: string): Promise<string> {
  serverOfRun ??= findServer()
  const { url, template } = await serverOfRun
  await onServer(url, async (client) => {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
  })
  return toDatabaseUrl(url, name)
}

export async function dropNamedDatabase(name: string): Promise<void> {
  if (serverOfRun === null) return
  const { url } = await serverOfRun
  await onServer(url, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
}

async function createDatabase(serverUrl: string, source: string): Promise<TestDatabase> {
  const name = `t_${randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name} ${source}`))
  return {
    url: toDatabaseUrl(serverUrl, name),
    async [Symbol.asyncDispose]() {
      await onServer(serverUrl, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))
    },
  }
}

async function findServer(): Promise<TestServer> {
  const shared = await askForPostgres()
  if (shared !== null) return { url: shared, template: await ensureTemplate(shared) }
  ownServer = await startPostgres()
  return { url: ownServer.url, template: await ensureTemplate(ownServer.url) }
}

/** Files of one run ask for it at the same time; one of them makes it. */
async function ensureTemplate(serverUrl: string): Promise<string> {
  const known = loadMigrations(MIGRATIONS_DIRECTORY)
  const sum = createHash('sha256')
    .update(known.map(({ checksum }) => checksum).join())
    .digest('hex')
    .slice(0, 16)
  const name = `template_${sum}`
  await onServer(serverUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock(1)')
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name])
    if (rowCount === 1) return
    await client.query(`CREATE DATABASE ${name}_new`)
    {
      await using session = await openSession({ url: toDatabaseUrl(serverUrl, `${name}_new`) })
      await applyMigrations(session, known, { clock: systemClock })
    }
    await client.query(`ALTER DATABASE ${name}_new RENAME TO ${name}`)
  })
  return name
}

async function onServer<Result>(url: string, body: (client: Client) => Promise<Result>): Promise<Result> {
  const client = createClient({ url })
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.end()
  }
}

function toDatabaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
