/** A process that opens a store on a database and does what its parent asks for, as much at a time as is asked. */
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import type { Answer, Ask } from './store-process.ts'

const [, , url] = process.argv as [string, string, string]
const store = await openPostgresStore({ url, migrates: false })
const ports = store as unknown as Record<string, Record<string, (...args: readonly unknown[]) => Promise<unknown>>>

async function answer({ id, port, method, args }: Ask): Promise<Answer> {
  try {
    return { id, value: await ports[port][method](...args) }
  } catch (error) {
    return { id, error: error instanceof Error ? error : new Error(String(error)) }
  }
}

process.on('message', (ask: Ask) => {
  answer(ask).then((answered) => process.send?.(answered))
})
process.once('disconnect', () => store[Symbol.asyncDispose]())
process.send?.('ready')
