/**
 * A real Postgres server for tests: in a folder of its own, on a free port of the loopback interface, gone without a trace. As a server
 * that people run, it wants a password (scram) and TLS, and clients check its certificate.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '../../../lib/postgres/driver.ts'
import { findFreePort } from '../network/free-port.ts'
import { refuseInQuickRun } from '../not-quick.ts'
import { findPostgresBinaries } from './postgres-binaries.ts'

interface ServerOptions {
  /** Writes reach the disk before they are acknowledged. Off by default: only the end of the machine could tell. */
  readonly isDurable?: boolean
  /** Further settings of the server. */
  readonly settings?: Readonly<Record<string, string>>
  /** Who may come in and how, as in pg_hba.conf; left out: everybody over TLS and with a password. */
  readonly access?: string
  /** Fills the empty folder of the server; left out: a new, empty cluster. */
  readonly fill?: (folder: ServerFolder) => Promise<void>
}

export interface ServerFolder {
  readonly data: string
  /** The user and group that the server runs as, where that is not this process's own. */
  readonly identity: { readonly uid?: number; readonly gid?: number }
}

export interface PostgresServer extends AsyncDisposable {
  /** Of the maintenance database. */
  readonly url: string
  readonly port: number
  readonly dataFolder: string
  /** What the server wrote to its log. */
  log(): string
  readonly pid: number
  /** `immediate` is a crash: nothing is written down, and the next start recovers from the log. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  start(): Promise<void>
  /** Stops all its processes as they stand; returns how to let them go on. Linux only. */
  freeze(): () => void
}

const USER = 'atelier'
/** Whatever an address, a file, a shell or a connection string could trip over. */
export const TEST_PASSWORD = `p@ss:/w?o#r%d%25 [&=+;,] ~"'\\$ é€🔑 `
const SCRAM_AND_TLS = `hostssl all all 127.0.0.1/32 scram-sha-256
hostssl replication all 127.0.0.1/32 scram-sha-256
`
const START_GIVE_UP_MS = 120_000
const LOOK_EVERY_MS = 20
const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  refuseInQuickRun('Postgres')
  const { isDurable = false, settings = {}, access = SCRAM_AND_TLS } = options
  const fill = options.fill ?? ((folder: ServerFolder) => initialise(folder, access))
  const binaries = findPostgresBinaries()
  const owner = findOwner()
  const directory = mkdtempSync(path.join(tmpdir(), 'atelier-postgres-'))
  chmodSync(directory, 0o700)
  if (owner !== null) chownSync(directory, owner.uid, owner.gid)
  const data = path.join(directory, 'data')
  const logFile = path.join(directory, 'log')
  const remove = () => rmSync(directory, { recursive: true, force: true })
  const identity = owner ?? {}
  try {
    await fill({ data, identity })
  } catch (error) {
    remove()
    throw error
  }
  const port = await findFreePort()
  const all = {
    listen_addresses: '127.0.0.1',
    port: `${port}`,
    unix_socket_directories: '',
    ssl: 'on',
    ssl_ca_file: 'authority.pem',
    ssl_cert_file: 'server.pem',
    ssl_key_file: 'server.key',
    max_connections: '300',
    shared_buffers: '128MB',
    fsync: isDurable ? 'on' : 'off',
    full_page_writes: isDurable ? 'on' : 'off',
    ...settings,
  }
  const args = ['-D', data, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const url = toServerUrl(port)
  let child: ChildProcess | null = null

  async function start(): Promise<void> {
    // A file, not a pipe: whoever started the server may be busy for minutes, and a full pipe would hold the server up.
    const log = openSync(logFile, 'a', 0o600)
    const started = spawn(path.join(binaries, 'postgres'), args, {
      ...identity,
      cwd: directory,
      // As a standby it is a client too, which looks for certificates in its home.
      env: { ...process.env, HOME: directory },
      stdio: ['ignore', 'ignore', log],
    })
    closeSync(log)
    child = started
    // A test that ends the process without a clean-up must not leave a server behind.
    started.unref()
    await untilReachable(url, () => {
      if (started.exitCode !== null)
        throw new Error(`Postgres ended at its start: ${readFileSync(logFile, 'utf8').slice(-5000)}`)
    })
  }

  async function stop(mode: 'fast' | 'immediate'): Promise<void> {
    const running = child
    child = null
    if (running === null || running.exitCode !== null) return
    const exited = once(running, 'exit')
    running.ref()
    running.kill(SIGNALS[mode])
    await exited
  }

  function readPid(): number {
    return Number(readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
  }

  function endNow(): void {
    child?.kill('SIGQUIT')
    remove()
  }
  process.on('exit', endNow)

  await start()
  return {
    url,
    port,
    dataFolder: data,
    log: () => readFileSync(logFile, 'utf8'),
    get pid() {
      return readPid()
    },
    start,
    stop,
    freeze() {
      const pids = listFamily(readPid())
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      return () => {
        for (const pid of pids) process.kill(pid, 'SIGCONT')
      }
    },
    async [Symbol.asyncDispose]() {
      await stop('fast')
      process.off('exit', endNow)
      remove()
    },
  }
}

/** With all that a client needs to get in; left out: the maintenance database. */
export function toServerUrl(port: number, database = 'postgres'): string {
  const tls = `sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate('authority.pem'))}`
  return `postgres://${USER}:${encodeURIComponent(TEST_PASSWORD)}@127.0.0.1:${port}/${database}?${tls}`
}

/** For a command line, which holds no passwords: goes with `PGPASSWORD`. */
export function withoutPassword(url: string): string {
  const bare = new URL(url)
  bare.password = ''
  return bare.href
}

/** A file of the folder `certificates`. */
export function certificate(name: string): string {
  return fileURLToPath(new URL(`certificates/${name}`, import.meta.url))
}

async function initialise({ data, identity }: ServerFolder, access: string): Promise<void> {
  const { uid = -1, gid = -1 } = identity
  const passwordFile = path.join(path.dirname(data), 'password')
  writeFileSync(passwordFile, `${TEST_PASSWORD}\n`, { mode: 0o600 })
  chownSync(passwordFile, uid, gid)
  const made = spawnSync(
    path.join(findPostgresBinaries(), 'initdb'),
    [
      ...['-D', data, '-U', USER, '-A', 'scram-sha-256', '--pwfile', passwordFile],
      ...['-E', 'UTF8', '--locale=C', '--no-instructions', '--no-sync'],
    ],
    { ...identity, cwd: path.dirname(data), encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr}`)
  writeFileSync(path.join(data, 'pg_hba.conf'), access)
  for (const name of readdirSync(certificate('.'))) {
    const copy = path.join(data, name)
    copyFileSync(certificate(name), copy)
    // A server refuses keys that others may read.
    chmodSync(copy, 0o600)
    chownSync(copy, uid, gid)
  }
}

/** Postgres refuses to run as root. */
function findOwner(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = users.find((line) => line.startsWith(`${name}:`))?.split(':') ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('Postgres does not run as root, and there is no user `postgres` or `nobody` to run it as.')
}

/** A process and its children: those of a server are not in its group. */
function listFamily(parent: number): number[] {
  const isChild = (pid: string) => {
    try {
      // The name of the program stands in parentheses and may hold anything; its state and its parent follow.
      return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1]) === parent
    } catch {
      return false
    }
  }
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isChild(name))
  return [parent, ...children.map(Number)]
}

async function untilReachable(url: string, mustGoOn: () => void): Promise<void> {
  const giveUpAt = performance.now() + START_GIVE_UP_MS
  for (;;) {
    const client = createClient({ url })
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      mustGoOn()
      if (performance.now() > giveUpAt) throw error
      await pause(LOOK_EVERY_MS)
    }
  }
}
