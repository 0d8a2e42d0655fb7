/**
 * Starts a ComfyUI process, starts it again with growing pauses whenever it ends, and ends it together with the service. Its port
 * is chosen once, so its address never changes. Whether it answers is watched elsewhere (see health/server-monitor.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { performance } from 'node:perf_hooks'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../../../../lib/clock.ts'
import { createBackoff, settlesWithin, sleep } from '../../../../../lib/waiting/sleep.ts'
import type { KeeperNews } from './keep-child.ts'
import { splitCommand, withPort } from './split-command.ts'

export interface LaunchOptions {
  /** Words as on a command line; `{port}` stands for the port. */
  readonly command: string
  /** Further words that are known only later: it is first started when they are. */
  readonly furtherWords?: Promise<readonly string[]>
  readonly cwd?: string
  /** Of the started process; absent: ours. */
  readonly env?: NodeJS.ProcessEnv
  /** Absent: a free one. */
  readonly port?: number
  /** How long its processes may take to end by themselves. */
  readonly killGraceMs?: number
  /** The first and the longest pause before it is started again. */
  readonly restartFirstMs?: number
  readonly restartMaxMs?: number
}

export interface Supervisor {
  readonly url: URL
  /** Starts the process, and from then on keeps it running. */
  start(events: SupervisorEvents): void
  startedAt(): Date | null
  memoryBytes(): number | null
  /** The last lines of the present process, or of the one before it. */
  lastLines(): readonly string[]
  /** Ends the process; resolves when it is gone, and a new one is being started. */
  recycle(): Promise<void>
  close(): Promise<void>
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

const KEEPER = fileURLToPath(new URL('./keep-child.ts', import.meta.url))
const HOST = '127.0.0.1'
const MAX_LINE_LENGTH = 16_384
// A process that lived this long did start, so the next pause is short again.
const LIVED_MS = 60_000
// Enough for the end of a traceback and the lines before it.
const LAST_LINES = 20
// The last lines of a process come through pipes and may arrive after the news of its end.
const PIPE_LAG_MS = 250

/** Throws CommandError for a command that cannot be run. */
export async function openSupervisor(options: LaunchOptions, deps: SupervisorDeps): Promise<Supervisor> {
  const { killGraceMs = 5_000, restartFirstMs = 1_000, restartMaxMs = 60_000 } = options
  const words = splitCommand(options.command)
  const port = options.port ?? (await findFreePort())
  let args = withPort(words, port)
  const closing = new AbortController()
  const backoff = createBackoff({ firstMs: restartFirstMs, maxMs: restartMaxMs })
  let keeper: ChildProcess | null = null
  let enginePid: number | null = null
  let startedAt: Date | null = null
  let isRecycling = false
  let lastLines: string[] = []
  let ended = Promise.resolve()

  function startOnce({ onLine, onStart }: SupervisorEvents): Promise<string> {
    const child = spawn(process.execPath, [KEEPER, String(killGraceMs), ...args], {
      cwd: options.cwd,
      env: options.env,
      // A group of its own: a signal from the terminal is ours to pass on, and one kill ends everything.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    keeper = child
    startedAt = deps.clock.now()
    let reason = 'its process ended'
    child.on('message', (news: KeeperNews) => {
      if (news.type === 'started') enginePid = news.pid
      else
        reason =
          news.type === 'failed'
            ? `it cannot be started: ${news.message}`
            : `its process ended (${news.signal ?? news.code})`
    })
    lastLines = []
    const onPrinted = (line: string) => {
      lastLines = [...lastLines.slice(1 - LAST_LINES), line.trimEnd()]
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
      child.on('exit', () => void settlesWithin(Promise.all(printed), PIPE_LAG_MS).then(() => resolve(reason)))
    })
  }

  async function keepRunning(events: SupervisorEvents): Promise<void> {
    if (options.furtherWords !== undefined) {
      const words = await unlessAborted(options.furtherWords, closing.signal)
      args = [...args, ...(words ?? [])]
    }
    while (!closing.signal.aborted) {
      const beganAt = performance.now()
      const reason = await startOnce(events)
      keeper = null
      enginePid = null
      startedAt = null
      const wasRecycled = isRecycling
      isRecycling = false
      if (closing.signal.aborted) return
      events.onEnd(wasRecycled ? RECYCLED : reason)
      if (wasRecycled || performance.now() - beganAt > LIVED_MS) backoff.reset()
      if (!wasRecycled) await sleep(backoff.nextMs(), closing.signal)
    }
  }

  /** The keeper process ends the group; should it hang, the group is killed here. */
  async function stop(): Promise<void> {
    const child = keeper
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    const over = new AbortController()
    if (child.connected) child.disconnect()
    const late = sleep(killGraceMs + 2_000, over.signal).then(() => {
      if (!over.signal.aborted && child.pid !== undefined) killGroup(child.pid)
    })
    await closed
    over.abort()
    await late
  }

  return {
    url: new URL(`http://${HOST}:${port}`),
    start(events) {
      ended = keepRunning(events)
    },
    startedAt: () => startedAt,
    lastLines: () => lastLines,
    memoryBytes: () => (enginePid === null ? null : readMemoryBytes(enginePid)),
    async recycle() {
      isRecycling = true
      await stop()
    },
    async close() {
      closing.abort()
      await stop()
      await ended
    },
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

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, HOST, () => {
      const address = server.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}

/** Tells every line of the stream, each bounded: the rest of a longer line is dropped. */
function readLines(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const parts = decoder.write(chunk).split('\n')
    for (const [index, part] of parts.entries()) {
      if (rest.length < maxLength) rest += part.slice(0, maxLength - rest.length)
      if (index === parts.length - 1) break
      onLine(`${rest}\n`)
      rest = ''
    }
  })
  stream.on('end', () => {
    if (rest !== '') onLine(`${rest}\n`)
    rest = ''
  })
  stream.on('error', () => {})
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
