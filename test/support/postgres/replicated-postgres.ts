/**
 * Two Postgres servers: one that takes writes, and a standby that has every commit before it is acknowledged. The first may crash and
 * come back, or be lost for good, and then the standby takes its place and gets a standby of its own. The standby is made with the
 * backup functions of the server alone, because packaged servers come without pg_basebackup.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '../../../lib/postgres/driver.ts'
import { type FaultProxy, openFaultProxy } from '../network/fault-proxy.ts'
import { type PostgresServer, type ServerFolder, startPostgres, TEST_PASSWORD } from './postgres-server.ts'

export interface ReplicatedPostgres extends AsyncDisposable {
  /** The one that takes writes. It is another one after a fail-over. */
  readonly primary: PostgresServer
  /** null: since the last fail-over there is none. */
  readonly standby: PostgresServer | null
  /** Between the two; while it is not open, commits wait. */
  readonly replication: FaultProxy
  readonly failOvers: number
  /**
   * Loses the primary, and promotes the standby with what it has: everything that was acknowledged. There is no standby then, and
   * commits wait for nobody, until `addStandby`.
   */
  failOver(): Promise<void>
  addStandby(): Promise<void>
  /** Resolves once every commit is on both. */
  untilInStep(): Promise<void>
}

const LOOK_EVERY_MS = 50
const GIVE_UP_MS = 120_000
// Enough for a standby that is made, or cut off, while the service is busy.
const SETTINGS = { wal_keep_size: '1GB', max_wal_size: '1GB', full_page_writes: 'on' }

export async function startReplicatedPostgres(settings: Record<string, string> = {}): Promise<ReplicatedPostgres> {
  // What a process wrote is there when the process is gone: only the end of the machine could tell whether it was synced.
  const options = { isDurable: false, settings: { ...SETTINGS, ...settings } }
  const pair = new ReplicatedPair(await startPostgres(options), await openFaultProxy(), options)
  try {
    await pair.addStandby()
  } catch (error) {
    await pair[Symbol.asyncDispose]()
    throw error
  }
  return pair
}

interface PairOptions {
  readonly isDurable: boolean
  readonly settings: Record<string, string>
}

class ReplicatedPair implements ReplicatedPostgres {
  primary: PostgresServer
  readonly replication: FaultProxy
  failOvers = 0
  standby: PostgresServer | null = null
  readonly #options: PairOptions

  constructor(primary: PostgresServer, replication: FaultProxy, options: PairOptions) {
    this.primary = primary
    this.replication = replication
    this.#options = options
  }

  async failOver(): Promise<void> {
    const { standby } = this
    if (standby === null) throw new Error('there is no standby that could take over')
    const lost = this.primary
    await lost.stop('immediate')
    await ask(standby.url, 'SELECT pg_promote(true, 60)')
    this.primary = standby
    this.standby = null
    await this.#waitForStandbys('')
    this.failOvers += 1
    await lost[Symbol.asyncDispose]()
  }

  async addStandby(): Promise<void> {
    const { primary, replication } = this
    replication.aim(primary.port)
    const { settings } = this.#options
    const password = TEST_PASSWORD.replaceAll(/['\\]/g, '\\$&')
    const tls = 'sslmode=verify-full sslrootcert=authority.pem'
    const source = `host=127.0.0.1 port=${replication.port} user=atelier password='${password}' ${tls} application_name=standby`
    this.standby = await startPostgres({
      ...this.#options,
      settings: { ...settings, primary_conninfo: source, hot_standby: 'on' },
      fill: (folder) => copyServer(primary, folder),
    })
    await this.#waitForStandbys('standby')
    await this.untilInStep()
  }

  async untilInStep(): Promise<void> {
    const giveUpAt = performance.now() + GIVE_UP_MS
    const isInStep = `SELECT count(*)::int AS n FROM pg_stat_replication
      WHERE state = 'streaming' AND sync_state = 'sync' AND flush_lsn >= pg_current_wal_flush_lsn()`
    while ((await ask(this.primary.url, isInStep).catch(() => null))?.n !== 1) {
      if (performance.now() > giveUpAt)
        throw new Error(`the standby never caught up: ${this.standby?.log().slice(-2000)}`)
      await pause(LOOK_EVERY_MS)
    }
  }

  async #waitForStandbys(names: string): Promise<void> {
    await ask(this.primary.url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await ask(this.primary.url, 'SELECT pg_reload_conf()')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A server that ends waits for its standby, unless that is gone.
    this.replication.set({ kind: 'cut' })
    await this.standby?.[Symbol.asyncDispose]()
    await this.primary[Symbol.asyncDispose]()
    await this.replication[Symbol.asyncDispose]()
  }
}

/** A copy of a running server that goes on as its standby. */
async function copyServer({ url, dataFolder }: PostgresServer, { data, identity }: ServerFolder): Promise<void> {
  const client = createClient({ url })
  await client.connect()
  try {
    await client.query("SELECT pg_backup_start('standby', true)")
    mkdirSync(data, { mode: 0o700 })
    // The log comes over the link; copying the gigabyte that is kept of it would take longer than everything else.
    const entries = readdirSync(dataFolder).filter((name) => name !== 'pg_wal' && name !== 'postmaster.pid')
    await copyInto(
      data,
      entries.map((name) => path.join(dataFolder, name)),
    )
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
    mkdirSync(path.join(data, 'pg_wal'), { mode: 0o700 })
    writeFileSync(path.join(data, 'backup_label'), rows[0].labelfile)
    writeFileSync(path.join(data, 'standby.signal'), '')
    await run('chown', ['-R', `${identity.uid ?? process.getuid?.()}`, data], {})
  } finally {
    await client.end()
  }
}

/** Files that vanish meanwhile are those that the log brings back or takes away again. */
async function copyInto(to: string, from: readonly string[]): Promise<void> {
  const said = await run('cp', ['-R', '-p', ...from, to], {}, [0, 1])
  const faults = said.split('\n').filter((line) => line !== '' && !line.includes('No such file'))
  if (faults.length > 0) throw new Error(`the server could not be copied: ${faults.join('; ')}`)
}

async function run(program: string, args: readonly string[], identity: object, fine = [0]): Promise<string> {
  const child = spawn(program, args, { ...identity, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    said += bytes.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  if (!fine.includes(code)) throw new Error(`${program} ended with ${code}: ${said}`)
  return said
}

/** The first row. */
async function ask(url: string, sql: string): Promise<Record<string, unknown> | undefined> {
  const client = createClient({ url })
  await client.connect()
  try {
    return (await client.query(sql)).rows[0]
  } finally {
    await client.end()
  }
}
