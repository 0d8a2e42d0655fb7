/**
 * Starts a ComfyUI process, starts it again with growing pauses whenever it ends, and ends it together with the service. Its port
 * is chosen once, so its address never changes. Whether it answers is watched elsewhere (see health/server-monitor.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import type { Clock } from '../../../../../lib/clock.ts'
import type { KeeperNews } from '../../../../../lib/processes/keep-child.ts'
import { findFreePort, KEEPER, readLines, type SystemUser } from '../../../../../lib/processes/kept-process.ts'
import { type Backoff, createBackoff, settlesWithin, sleep } from '../../../../../lib/waiting/sleep.ts'
import { rememberGroup } from './launched-groups.ts'
import { splitCommand, withPort } from './split-command.ts'

export interface LaunchOptions {
  /** Words as on a command line, or each by itself; `{port}` stands for the port. */
  readonly command: string | readonly [string, ...string[]]
  /** Further words that are known only later: it is first started when they are. */
  readonly furtherWords?: Promise<readonly string[]>
  readonly cwd?: string
  /** The folder in which its processes are remembered while they live; absent: nowhere. */
  readonly rememberIn?: string
  /** Of the started process; absent: ours. */
  readonly env?: NodeJS.ProcessEnv
  /** Who it runs as; absent or null: as we do. */
  readonly user?: SystemUser | null
  /** Absent: a free one. */
  readonly port?: number
  /** How long its processes may take to end by themselves. */
  readonly killGraceMs?: number
  /** The first and the longest pause before it is started again. */
  readonly restartFirstMs?: number
  readonly restartMaxMs?: number
}

interface SupervisorEvents {
  onLine(line: string): void
  /** A new process is being started. */
  onStart(): void
  onEnd(reason: string): void
}

interface SupervisorDeps {
  readonly clock: Clock
}

/** The reason that `onEnd` gets after `recycle`. */
export const RECYCLED = 'it was recycled'

const HOST = '127.0.0.1'
const MAX_LINE_LENGTH = 16_384
// A process that lived this long did start, so the next pause is short again.
const LIVED_MS = 60_000
// Enough for the end of a traceback and the lines before it.
const LAST_LINES = 20
// The last lines of a process come through pipes and may arrive after the news of its end.
const PIPE_LAG_MS = 250

/** Throws CommandError for a command that cannot be run. */
export async function openSupervisor(options: LaunchOptions, { clock }: SupervisorDeps): Promise<Supervisor> {
  const { command } = options
  const words = typeof command === 'string' ? splitCommand(command) : command
  const port = options.port ?? (await findFreePort())
  return new Supervisor({ ...options, clock, port, args: withPort(words, port) })
}

interface StartOptions extends LaunchOptions, SupervisorDeps {
  readonly port: number
  readonly args: readonly string[]
}

export class Supervisor {
  readonly url: URL
  readonly #options: StartOptions
  readonly #killGraceMs: number
  readonly #closing = new AbortController()
  readonly #backoff: Backoff
  #keeper: ChildProcess | null = null
  #enginePid: number | null = null
  #startedAt: Date | null = null
  #isRecycling = false
  #lastLines: string[] = []
  #ended = Promise.resolve()

  constructor(options: StartOptions) {
    const { killGraceMs = 5_000, restartFirstMs = 1_000, restartMaxMs = 60_000 } = options
    this.#options = options
    this.url = new URL(`http://${HOST}:${options.port}`)
    this.#killGraceMs = killGraceMs
    this.#backoff = createBackoff({ firstMs: restartFirstMs, maxMs: restartMaxMs })
  }

  /** Starts the process, and from then on keeps it running. */
  start(events: SupervisorEvents): void {
    this.#ended = this.#keepRunning(events)
  }

  startedAt(): Date | null {
    return this.#startedAt
  }

  /** The last lines of the present process, or of the one before it. */
  lastLines(): readonly string[] {
    return this.#lastLines
  }

  memoryBytes(): number | null {
    return this.#enginePid === null ? null : readMemoryBytes(this.#enginePid)
  }

  /** Ends the process; resolves when it is gone, and a new one is being started. */
  async recycle(): Promise<void> {
    this.#isRecycling = true
    await this.#stop()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#stop()
    await this.#ended
  }

  #startOnce(args: readonly string[], { onLine, onStart }: SupervisorEvents): Promise<string> {
    const child = spawn(process.execPath, [KEEPER, String(this.#killGraceMs), ...args], {
      cwd: this.#options.cwd,
      env: this.#options.env,
      ...(this.#options.user ?? {}),
      // A group of its own: a signal from the terminal is ours to pass on, and one kill ends everything.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#keeper = child
    const { rememberIn } = this.#options
    const memory = rememberIn === undefined || child.pid === undefined ? null : rememberGroup(rememberIn, child.pid)
    this.#startedAt = this.#options.clock.now()
    let reason = 'its process ended'
    child.on('message', (news: KeeperNews) => {
      if (news.type === 'started') {
        this.#enginePid = news.pid
        memory?.started(news.pid)
      } else
        reason =
          news.type === 'failed'
            ? `it cannot be started: ${news.message}`
            : `its process ended (${news.signal ?? news.code})`
    })
    this.#lastLines = []
    const onPrinted = (line: string) => {
      this.#lastLines = [...this.#lastLines.slice(1 - LAST_LINES), line.trimEnd()]
      onLine(line)
    }
    const streams = [child.stdout, child.stderr].filter((stream) => stream !== null)
    const printed = streams.map((stream) => {
      readLines(stream, MAX_LINE_LENGTH, onPrinted)
      return new Promise((resolve) => stream.once('close', resolve))
    })
    onStart()
    return new Promise((resolve) => {
      child.on('error', (error) => resolve(`it cannot be started: ${error.message}`))
      // `close` would not come after a disconnect.
      child.on('exit', () => {
        // One that was killed could not end its group.
        if (child.pid !== undefined) killGroup(child.pid)
        memory?.ended()
        void settlesWithin(Promise.all(printed), PIPE_LAG_MS).then(() => resolve(reason))
      })
    })
  }

  async #keepRunning(events: SupervisorEvents): Promise<void> {
    const { args, furtherWords } = this.#options
    const further = furtherWords === undefined ? null : await unlessAborted(furtherWords, this.#closing.signal)
    while (!this.#closing.signal.aborted) {
      const beganAt = performance.now()
      const reason = await this.#startOnce([...args, ...(further ?? [])], events)
      this.#keeper = null
      this.#enginePid = null
      this.#startedAt = null
      const wasRecycled = this.#isRecycling
      this.#isRecycling = false
      if (this.#closing.signal.aborted) return
      events.onEnd(wasRecycled ? RECYCLED : reason)
      if (wasRecycled || performance.now() - beganAt > LIVED_MS) this.#backoff.reset()
      if (!wasRecycled) await sleep(this.#backoff.nextMs(), this.#closing.signal)
    }
  }

  /** The keeper process ends the group; should it hang, the group is killed here. */
  async #stop(): Promise<void> {
    const child = this.#keeper
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    const over = new AbortController()
    if (child.connected) child.disconnect()
    const late = sleep(this.#killGraceMs + 2_000, over.signal).then(() => {
      if (!over.signal.aborted && child.pid !== undefined) killGroup(child.pid)
    })
    await closed
    over.abort()
    await late
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

/** null: the signal came first. */
async function unlessAborted<T>(promised: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const aborted = Promise.withResolvers<null>()
  const onAbort = () => aborted.resolve(null)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([promised, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const PAGE_BYTES = 4_096
const MAX_PROCESSES = 256

/** What a process and everything it started occupy; null where the system does not tell (only Linux does). */
function readMemoryBytes(pid: number): number | null {
  let bytes = 0
  let isTold = false
  const open = [pid]
  for (let seen = 0; seen < MAX_PROCESSES; seen++) {
    const next = open.pop()
    if (next === undefined) break
    const pages = read(`/proc/${next}/statm`)?.split(' ')[1]
    if (pages === undefined) continue
    isTold = true
    bytes += Number(pages) * PAGE_BYTES
    const children = read(`/proc/${next}/task/${next}/children`)?.trim() ?? ''
    if (children !== '') open.push(...children.split(/\s+/).map(Number))
  }
  return isTold ? bytes : null
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
