/** Stores in processes of their own, on one database: what is asked of them at once, they do at once. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Store } from '../../../src/domain/store.ts'
import { createTestDatabase } from '../postgres/test-database.ts'

export interface Ask {
  readonly id: number
  readonly port: string
  readonly method: string
  readonly args: readonly unknown[]
}

export type Answer = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: Error }

/** The ports, asked by message. `audited` is not among them. */
type RemoteStore = Pick<
  Store,
  | 'jobs'
  | 'assets'
  | 'accounts'
  | 'keys'
  | 'directory'
  | 'apiKeys'
  | 'ledger'
  | 'budgets'
  | 'limits'
  | 'calls'
  | 'requests'
>

export interface StoreProcess extends AsyncDisposable {
  readonly store: RemoteStore
  /** As the machine would: nothing is finished, nothing is said. Whatever was asked and not answered fails. */
  kill(): Promise<void>
}

export async function startStoreProcess(url: string): Promise<StoreProcess> {
  const child = fork(path.join(import.meta.dirname, 'store-child.ts'), [url], { serialization: 'advanced' })
  const exited = once(child, 'exit')
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let asked = 0
  await Promise.race([once(child, 'message'), exited.then(([code]) => assertNever(code))])
  child.on('message', (answer: Answer) => {
    const { resolve, reject } = waiting.get(answer.id) as PromiseWithResolvers<unknown>
    waiting.delete(answer.id)
    if ('error' in answer) reject(answer.error)
    else resolve(answer.value)
  })
  child.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('The process has ended.'))
    waiting.clear()
  })

  function ask(port: string, method: string, args: readonly unknown[]): Promise<unknown> {
    if (!child.connected) return Promise.reject(new Error('The process has ended.'))
    const answered = Promise.withResolvers<unknown>()
    const id = asked++
    waiting.set(id, answered)
    child.send({ id, port, method, args } satisfies Ask)
    return answered.promise
  }

  return {
    store: new Proxy({} as RemoteStore, { get: (_, port) => toPort(String(port), ask) }),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

function toPort(
  port: string,
  ask: (port: string, method: string, args: readonly unknown[]) => Promise<unknown>,
): object {
  return new Proxy(
    {},
    {
      get:
        (_, method) =>
        (...args: readonly unknown[]) =>
          ask(port, String(method), args),
    },
  )
}

function assertNever(code: unknown): never {
  throw new Error(`The process ended with ${code} before it was ready.`)
}

export interface Cluster extends AsyncDisposable {
  readonly url: string
  readonly processes: readonly StoreProcess[]
  /** The stores of the processes, in turn. */
  readonly stores: readonly RemoteStore[]
}

/** As many processes on a new database. */
export async function startCluster(size: number): Promise<Cluster> {
  await using starting = new AsyncDisposableStack()
  const { url } = starting.use(await createTestDatabase())
  const processes = await Promise.all(Array.from({ length: size }, () => startStoreProcess(url)))
  for (const process of processes) starting.use(process)
  const open = starting.move()
  return {
    url,
    processes,
    stores: processes.map(({ store }) => store),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
