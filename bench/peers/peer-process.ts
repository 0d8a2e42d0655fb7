/** Another project's server as a process of its own: started on a free port, waited for, measured and ended. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface PeerProcess extends AsyncDisposable {
  readonly name: string
  readonly url: string
  /** From the start of the process to its first answer. */
  readonly startedMs: number
  readonly pid: number
  readonly rssBytes: () => number
}

interface PeerCommand {
  readonly name: string
  readonly command: string
  /** `folder`: for its files; gone with the process. */
  readonly toArguments: (port: number, folder: string) => readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Any answer to a GET of it says that the peer is there. */
  readonly probe: string
}

const START_WITHIN_MS = 120_000
const END_WITHIN_MS = 10_000

export async function startPeer({ name, command, toArguments, environment, probe }: PeerCommand): Promise<PeerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-peer-'))
  const port = await findPort()
  const log = openSync(join(folder, 'log'), 'w')
  const startedAt = performance.now()
  const child = spawn(command, toArguments(port, folder), {
    ...{ cwd: folder, stdio: ['ignore', log, log], env: { ...process.env, ...environment } },
  })
  const url = `http://127.0.0.1:${port}`
  const isGone = () => child.exitCode !== null || child.signalCode !== null
  while (!(await answers(url + probe))) {
    if (!isGone() && performance.now() - startedAt < START_WITHIN_MS) continue
    child.kill('SIGKILL')
    throw new Error(`${name} does not answer: ${readFileSync(join(folder, 'log'), 'utf8').slice(-2000)}`)
  }
  const startedMs = performance.now() - startedAt
  return {
    ...{ name, url, startedMs, pid: child.pid ?? 0 },
    rssBytes: () => treeOf(child.pid ?? 0).reduce((sum, pid) => sum + rssOf(pid), 0),
    async [Symbol.asyncDispose]() {
      if (!isGone()) {
        const gone = once(child, 'exit')
        child.kill('SIGTERM')
        const tooLate = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS)
        await gone
        clearTimeout(tooLate)
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
    await response.arrayBuffer()
    return true
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 10))
    return false
  }
}

async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

function treeOf(pid: number): number[] {
  const file = `/proc/${pid}/task/${pid}/children`
  if (!existsSync(file)) return [pid]
  const children = readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  return [pid, ...children.flatMap(treeOf)]
}

function rssOf(pid: number): number {
  try {
    const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kilobytes) * 1024
  } catch {
    return 0
  }
}
