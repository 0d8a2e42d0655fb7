/** The real command in a process of its own: what a user starts, and what a test may kill without warning. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { refuseInQuickRun } from '../not-quick.ts'
import { GIVE_UP_MS } from '../wait-until.ts'
import { PROGRAM } from './program.ts'

// Other lines may name addresses too, of a storage that cannot be reached for instance.
const STARTED = /(?:is serving at|its health is at|works for) (http:\/\/127\.0\.0\.1:\d+)/

export interface SpawnedServer extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  readonly exited: Promise<number | null>
  output(): string
  /** Kills the process without warning or clean-up, like a power cut. */
  killNow(): Promise<void>
  terminate(): Promise<number | null>
}

export interface SpawnOptions {
  /** A program that starts the command, such as a shell that prepares the environment and then execs it. */
  readonly prefix?: readonly string[]
  /** The program to run instead of that of this checkout. */
  readonly bin?: string
  /** The command that serves. */
  readonly command?: 'serve' | 'work'
  /** Hears everything that the process prints. */
  readonly onOutput?: (text: string) => void
}

export async function spawnServer(
  flags: readonly string[],
  env: Record<string, string> = {},
  { prefix = [], bin = PROGRAM, command = 'serve', onOutput = () => {} }: SpawnOptions = {},
): Promise<SpawnedServer> {
  refuseInQuickRun('a process of its own')
  const [program, ...args] = [...prefix, process.execPath, bin, command, '--port', '0', ...flags]
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  // A process that ends without a clean-up must not leave the server behind.
  const endNow = () => void child.kill('SIGKILL')
  process.on('exit', endNow)
  exited.then(() => process.off('exit', endNow))
  const output = collectOutput(child, onOutput)
  const url = await waitForAddress(child, output, exited)
  return {
    url,
    pid: child.pid ?? 0,
    exited,
    output: output.text,
    async killNow() {
      child.kill('SIGKILL')
      await exited
    },
    async terminate() {
      child.kill('SIGTERM')
      return exited
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

function collectOutput(
  child: ChildProcess,
  onOutput: (text: string) => void,
): { text(): string; onChunk(listener: () => void): void } {
  let text = ''
  let listener = () => {}
  const collect = (chunk: Buffer) => {
    onOutput(chunk.toString())
    text = (text + chunk.toString()).slice(-100_000)
    listener()
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  return {
    text: () => text,
    onChunk(next) {
      listener = next
    },
  }
}

function waitForAddress(
  child: ChildProcess,
  output: ReturnType<typeof collectOutput>,
  exited: Promise<number | null>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`no address within ${GIVE_UP_MS} ms:\n${output.text()}`))
    }, GIVE_UP_MS)
    const look = () => {
      const url = STARTED.exec(output.text())?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    }
    output.onChunk(look)
    look()
    exited.then((code) => {
      clearTimeout(timer)
      reject(new Error(`the server stopped with ${code} before it listened:\n${output.text()}`))
    })
  })
}
