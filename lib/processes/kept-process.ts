/**
 * Programs that we start and that never outlive us: each runs in a process group of its own below a keeper (keep-child.ts), which
 * ends the group when the program ends, when we say so, and when this process is gone for whatever reason.
 */
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { fileURLToPath } from 'node:url'
import { settlesWithin, sleep } from '../waiting/sleep.ts'
import type { KeeperNews } from './keep-child.ts'

export const KEEPER = fileURLToPath(new URL('./keep-child.ts', import.meta.url))

/** Another user of the system, which only the administrator may start programs as. */
export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

interface KeptOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly user?: SystemUser | null
  readonly killGraceMs?: number
  onLine(line: string, stream: 'stdout' | 'stderr'): void
}

/** `code` null: it did not start, or was ended; `problem` says which. */
export interface KeptEnd {
  readonly code: number | null
  readonly problem: string | null
}

interface KeptProcess {
  readonly ended: Promise<KeptEnd>
  /** Resolves when the whole group is gone. */
  stop(): Promise<void>
}

const MAX_LINE_LENGTH = 16_384
// The last lines of a process come through pipes and may arrive after the news of its end.
const PIPE_LAG_MS = 250

export function startKept(words: readonly string[], options: KeptOptions): KeptProcess {
  const { cwd, env, user = null, killGraceMs = 2_000, onLine } = options
  const child = spawn(process.execPath, [KEEPER, String(killGraceMs), ...words], {
    cwd,
    env,
    ...(user ?? {}),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const printed = (['stdout', 'stderr'] as const).map((name) => {
    const stream = child[name] as Readable
    readLines(stream, MAX_LINE_LENGTH, (line) => onLine(line.trimEnd(), name))
    return new Promise((resolve) => stream.once('close', resolve))
  })
  let end: KeptEnd = { code: null, problem: 'it was ended' }
  child.on('message', (news: KeeperNews) => {
    if (news.type === 'failed') end = { code: null, problem: `it cannot be started: ${news.message}` }
    if (news.type === 'ended') end = { code: news.code, problem: news.signal === null ? null : `it got ${news.signal}` }
  })
  const ended = new Promise<KeptEnd>((resolve) => {
    child.on('error', (error) => resolve({ code: null, problem: `it cannot be started: ${error.message}` }))
    child.on('exit', () => void settlesWithin(Promise.all(printed), PIPE_LAG_MS).then(() => resolve(end)))
  })
  return {
    ended,
    async stop() {
      if (child.connected) child.disconnect()
      const over = new AbortController()
      const late = sleep(killGraceMs + 2_000, over.signal).then(() => {
        if (!over.signal.aborted && child.pid !== undefined) killGroup(child.pid)
      })
      await ended
      over.abort()
      await late
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

const HOST = '127.0.0.1'

export function findFreePort(): Promise<number> {
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
export function readLines(stream: Readable, maxLength: number, onLine: (line: string) => void): void {
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
