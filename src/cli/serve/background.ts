/**
 * `atelier start`, `stop` and `status`: the service in the background. The process is an ordinary `serve` in a session of its
 * own. The lock of the data folder decides whether it runs, never a process id alone.
 */
import { spawn } from 'node:child_process'
import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { findService, readServiceAddress, type ServiceAddress } from '../../compose/process/service-file.ts'
import type { Config } from '../../config/config.ts'
import { addSettingFlags, loadFromCommandLine, printWarnings } from '../setting-flags.ts'
import { CommandError, EXIT, type Finish, printLine, type Terminal, toPrintable } from '../terminal.ts'

const LOG_NAME = 'service.log'
const OWNER_ONLY = 0o600
// Beyond this size a start begins a new log file and keeps one older.
const MAX_LOG_BYTES = 16 * 2 ** 20
const LOOK_EVERY_MS = 50
// Enough for migrations of a large store, custom nodes, and engines that the start waits for.
const START_WITHIN_MS = 120_000
// Added to the time that running jobs may take to finish.
const STOP_GRACE_MS = 15_000
const SHOWN_LOG_BYTES = 4096

type Options = Readonly<Record<string, unknown>>

export function addBackground(program: Command, terminal: Terminal, finish: Finish): void {
  const start = program.command('start').description('start the service in the background')
  addSettingFlags(start).action(async (options: Options) => {
    finish(await startService(options, terminal))
  })
  const stop = program.command('stop').description('stop the service that holds the data folder, and wait for its end')
  addSettingFlags(stop, ['dataDir', 'drainTimeout']).action(async (options: Options) => {
    finish(await stopService(options, terminal))
  })
  const status = program.command('status').description('say whether a service holds the data folder, and where it is')
  addSettingFlags(status, ['dataDir']).action((options: Options) => {
    finish(showStatus(options, terminal))
  })
}

async function startService(options: Options, terminal: Terminal): Promise<number> {
  // Read here first, so that mistakes in the settings are reported in this terminal.
  const loaded = loadFromCommandLine(options, terminal)
  const { config } = loaded
  const { dataDirectory: directory } = config
  mustHoldFolder(config)
  const found = findService(config)
  if (found.state === 'running')
    throw new CommandError(
      `the service runs already: ${describe(found.address)}; stop it with: atelier stop`,
      EXIT.failed,
    )
  if (found.state !== 'none') throw new CommandError(toReason(found, directory), EXIT.failed)
  printWarnings(loaded, terminal)
  const log = openLogFile(directory)
  try {
    // The flags as they were given. The new process has the same environment and working directory, so it finds the other settings.
    const flags = terminal.args.slice(terminal.args.indexOf('start') + 1)
    const child = spawn(process.execPath, [terminal.program, 'serve', ...flags], {
      cwd: terminal.cwd,
      env: terminal.env,
      detached: true,
      stdio: ['ignore', log.descriptor, log.descriptor],
    })
    const ended = new Promise<number>((resolve) => {
      child.once('error', () => resolve(EXIT.failed))
      child.once('exit', (code) => resolve(code ?? EXIT.failed))
    })
    return await report({ config, pid: child.pid, ended, log }, terminal)
  } finally {
    closeSync(log.descriptor)
  }
}

interface Started {
  readonly config: Config
  readonly pid: number | undefined
  /** Its exit code. */
  readonly ended: Promise<number>
  readonly log: LogFile
}

async function report({ config, pid, ended, log }: Started, terminal: Terminal): Promise<number> {
  const over = new AbortController()
  const failed = ended.then((code) => ({ code }))
  const address = await Promise.race([failed, untilAnnounced(config.dataDirectory, pid, over.signal)])
  over.abort()
  if (address === null) {
    throw new CommandError(
      `process ${pid} has not come up within ${START_WITHIN_MS / 1000} s; see ${log.path}`,
      EXIT.failed,
    )
  }
  if ('code' in address) {
    const lines = toPrintable(log.tail()).trimEnd().split('\n')
    const reason = lines.filter((line) => line.startsWith('atelier: ')).at(-1)
    printLine(terminal.stderr, reason ?? `atelier: the service ended at once; see ${log.path}`)
    return address.code === EXIT.ok ? EXIT.failed : address.code
  }
  printLine(terminal.stdout, `started: ${describe(address)}\n  log   ${log.path}\n  stop  atelier stop`)
  return EXIT.ok
}

/** Reads the file only: trying the lock could get in the way of the process that is about to take it. */
async function untilAnnounced(
  directory: string,
  pid: number | undefined,
  signal: AbortSignal,
): Promise<ServiceAddress | null> {
  for (let waitedMs = 0; waitedMs < START_WITHIN_MS && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    const address = readServiceAddress(directory)
    if (address !== null && address.pid === pid) return address
    await sleep(LOOK_EVERY_MS, signal)
  }
  return null
}

async function stopService(options: Options, terminal: Terminal): Promise<number> {
  const { config } = loadFromCommandLine(options, terminal, { isForUpkeep: true })
  mustHoldFolder(config)
  const found = findService(config)
  if (found.state === 'none') {
    printLine(terminal.stdout, `no service holds ${config.dataDirectory}`)
    return EXIT.ok
  }
  if (found.state !== 'running') throw new CommandError(toReason(found, config.dataDirectory), EXIT.failed)
  const { address } = found
  if (address.host !== hostname())
    throw new CommandError(
      `the service runs on ${toPrintable(address.host)}, not on this machine; stop it there`,
      EXIT.failed,
    )
  signal(address.pid, 'SIGTERM')
  const withinMs = config.jobs.drainTimeoutMs + STOP_GRACE_MS
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += LOOK_EVERY_MS) {
    if (!signal(address.pid, 0)) {
      printLine(terminal.stdout, `stopped: process ${address.pid}`)
      return EXIT.ok
    }
    await sleep(LOOK_EVERY_MS)
  }
  throw new CommandError(`process ${address.pid} has not ended after ${withinMs / 1000} s`, EXIT.failed)
}

function showStatus(options: Options, terminal: Terminal): number {
  const { config } = loadFromCommandLine(options, terminal, { isForUpkeep: true })
  mustHoldFolder(config)
  const found = findService(config)
  if (found.state === 'running') {
    printLine(terminal.stdout, `running: ${describe(found.address)}`)
    return EXIT.ok
  }
  printLine(
    terminal.stdout,
    found.state === 'none' ? `no service holds ${config.dataDirectory}` : toReason(found, config.dataDirectory),
  )
  return EXIT.unreachable
}

/** Several processes may share a database and a data folder, so these commands could not tell which of them is meant. */
function mustHoldFolder({ store }: Config): void {
  if (store.kind === 'sqlite') return
  throw new CommandError(
    'with a database, run `atelier serve` under a process manager: start, stop and status are for the one service of a data folder',
    EXIT.usage,
  )
}

function describe({ baseUrl, pid, host }: ServiceAddress): string {
  const machine = host === hostname() ? '' : ` on ${toPrintable(host)}`
  return `${baseUrl} (process ${pid}${machine})`
}

function toReason(
  found: { readonly state: 'held' } | { readonly state: 'unusable'; readonly message: string },
  directory: string,
): string {
  return found.state === 'unusable'
    ? `cannot open the data folder: ${found.message}`
    : `${directory} is in use: a service is starting or stopping, or another command uses it; try again`
}

/** false: there is no such process. */
function signal(pid: number, which: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, which)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw new CommandError(`process ${pid} cannot be signalled: ${(error as Error).message}`, EXIT.failed)
  }
}

interface LogFile {
  readonly path: string
  readonly descriptor: number
  /** The end of what was written since the file was opened. */
  tail(): string
}

function openLogFile(directory: string): LogFile {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const file = path.join(directory, LOG_NAME)
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) renameSync(file, `${file}.1`)
  const descriptor = openSync(file, 'a+', OWNER_ONLY)
  const from = fstatSync(descriptor).size
  return {
    path: file,
    descriptor,
    tail() {
      const { size } = fstatSync(descriptor)
      const start = Math.max(from, size - SHOWN_LOG_BYTES)
      const bytes = Buffer.alloc(size - start)
      readSync(descriptor, bytes, 0, bytes.length, start)
      return bytes.toString('utf8')
    },
  }
}
