/**
 * Threads of the store for tests: one whose store was closed is given the next store instead of ending. To start a thread and load its
 * code takes longer than all that most tests do with a store, and tests open a thousand of them. It is a real thread with the code that
 * users run; one that failed, or could not open its store, is never used again.
 */
import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, type Worker, type WorkerOptions } from 'node:worker_threads'
import type { Assignment } from './warm-thread.ts'

const idle: Worker[] = []

/** As much of a `Worker` as the store uses. */
export class WarmThread extends EventEmitter {
  readonly #host: Worker
  readonly #port: MessagePort
  readonly #onError = (error: unknown) => void this.emit('error', error)
  readonly #onExit = (code: number) => void this.emit('exit', code)
  #hasOpened = false

  constructor(script: URL, { workerData }: WorkerOptions, start: () => Worker) {
    super()
    this.#host = idle.pop() ?? start()
    this.#host.ref()
    this.#host.on('error', this.#onError)
    this.#host.on('exit', this.#onExit)
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (message) => {
      this.#hasOpened ||= message.opened === true
      this.emit('message', message)
    })
    port1.on('messageerror', (error) => this.emit('messageerror', error))
    // The last messages come before its port closes. A thread that dies closes its port as well, but never says that it ended.
    const said = new Promise((resolve) => this.#host.once('message', resolve))
    const closed = new Promise((resolve) => port1.once('close', resolve))
    void Promise.all([said, closed]).then(() => this.#onEnded())
    const assignment: Assignment = { script: script.href, workerData, parentPort: port2 }
    this.#host.postMessage(assignment, [port2])
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message)
  }

  #onEnded(): void {
    // What it still holds of a database that it could not open, it lets go with its end.
    if (!this.#hasOpened) return void this.#host.terminate()
    this.#host.off('error', this.#onError)
    this.#host.off('exit', this.#onExit)
    this.#host.unref()
    idle.push(this.#host)
    this.emit('exit', 0)
  }
}
