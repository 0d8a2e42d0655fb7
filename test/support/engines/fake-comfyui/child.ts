/** The fake server as a child of the test, to be killed without warning and started again at the same address. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../network/free-port.ts'
import type { ExecutionNews, FakeOptions } from './fake-options.ts'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
const ADDRESS = /To see the GUI go to: http:\/\/127\.0\.0\.1:(\d+)/

export interface ChildOptions extends Pick<FakeOptions, 'nodeMs' | 'checkpoints'> {
  /** Kept over all its lives. */
  readonly logPath: string
}

export class FakeComfyChild implements AsyncDisposable {
  readonly #options: ChildOptions
  #child: ChildProcess | null = null
  #port = 0

  constructor(options: ChildOptions) {
    this.#options = options
    writeFileSync(options.logPath, '', { flag: 'a' })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Everything that was ever begun or ended here, whatever became of the process. */
  news(): ExecutionNews[] {
    const lines = readFileSync(this.#options.logPath, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as ExecutionNews)
  }

  /** At the same address as before. Resolves when it listens. */
  async start(): Promise<void> {
    const { logPath, ...options } = this.#options
    if (this.#port === 0) this.#port = await findFreePort()
    const args = [MAIN, '--port', String(this.#port), '--options', JSON.stringify(options), '--log', logPath]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    // A test that ends its process without a clean-up must not leave the server behind.
    const endNow = () => void child.kill('SIGKILL')
    process.on('exit', endNow)
    child.once('exit', () => process.off('exit', endNow))
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    let text = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-10_000)
      const port = ADDRESS.exec(text)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
    child.once('exit', (code, signal) => reject(new Error(`the fake server ended (${code ?? signal}): ${text}`)))
    this.#port = await promise
  }

  /** Stopped as it stands: its connections stay and it answers nothing, until `resume`. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** No warning, no clean-up. */
  async kill(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
