/**
 * Runs a server under measurement in a process of its own, so that its CPU time and memory can be measured alone.
 * `forkServer` is the parent's end; `reportToParent` is what the server's module calls once it listens.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Usage {
  readonly cpuMicros: number
  readonly rssBytes: number
}

export interface ServerChild extends AsyncDisposable {
  readonly url: string
  usage(): Promise<Usage>
  /** Measured after a full collection. For memory only: a forced collection makes later ones slower, which would distort times. */
  settledUsage(): Promise<Usage>
  /** Sends one command to the server's handler and returns the answer. */
  ask<Answer>(command: string, argument?: unknown): Promise<Answer>
}

interface Answered {
  readonly id: number
  readonly answer: unknown
}

export async function forkServer(modulePath: string, settings: object = {}): Promise<ServerChild> {
  const child = fork(modulePath, [JSON.stringify(settings)], {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [ready] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error(`${modulePath} stopped before it listened`))),
  ])) as [{ url: string }]
  const ask = createAsk(child)
  return {
    url: ready.url,
    ask,
    usage: () => ask<Usage>('usage'),
    settledUsage: () => ask<Usage>('settledUsage'),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    },
  }
}

function createAsk(child: ChildProcess) {
  const waiting = new Map<number, (answer: unknown) => void>()
  let lastId = 0
  child.on('message', (message: Answered) => {
    waiting.get(message.id)?.(message.answer)
    waiting.delete(message.id)
  })
  return <Answer>(command: string, argument: unknown = null): Promise<Answer> => {
    const id = ++lastId
    return new Promise<Answer>((resolve) => {
      waiting.set(id, (answer) => resolve(answer as Answer))
      child.send({ id, command, argument })
    })
  }
}

const USAGE_COMMANDS: ReadonlySet<string> = new Set(['usage', 'settledUsage'])

export type CommandHandler = (command: string, argument: unknown) => unknown

/** The server's end: announces its address and answers the parent's questions until it is told to stop. */
export function reportToParent(url: string, options: { handle?: CommandHandler; close: () => Promise<void> }): void {
  process.on('message', async ({ id, command, argument }: { id: number; command: string; argument: unknown }) => {
    if (command === 'settledUsage') globalThis.gc?.()
    const answer = USAGE_COMMANDS.has(command) ? readUsage() : await options.handle?.(command, argument)
    process.send?.({ id, answer })
  })
  process.once('SIGTERM', async () => {
    await options.close()
    process.disconnect?.()
    process.exit(0)
  })
  process.send?.({ url })
}

function readUsage(): Usage {
  const cpu = process.cpuUsage()
  return { cpuMicros: cpu.user + cpu.system, rssBytes: process.memoryUsage().rss }
}

export function readSettings<Settings>(): Settings {
  return JSON.parse(process.argv[2] ?? '{}') as Settings
}

/** Listens on a free port of this machine; the end of the process closes it, and then what belongs to it. */
export function listenForParent(server: Server, close: () => Promise<void> | void = () => {}): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    reportToParent(`http://127.0.0.1:${port}`, {
      async close() {
        server.closeAllConnections()
        server.close()
        await close()
      },
    })
  })
}
