/**
 * The same operations and the same stores without threads or a disk: for tests that need thousands of sequences rather than
 * durability. Calls of one turn share a transaction like a group commit, and a crash can take such a transaction along.
 */
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../../../lib/clock.ts'
import { loadMigrations } from '../../../../src/adapters/store/migration-files.ts'
import { applyMigrations, MIGRATIONS_DIRECTORY } from '../../../../src/adapters/store/sqlite/database/migrations.ts'
import { prepareReadOperations } from '../../../../src/adapters/store/sqlite/operations/read-operations.ts'
import { prepareWriteOperations } from '../../../../src/adapters/store/sqlite/operations/write-operations.ts'
import { limitStore } from '../../../../src/adapters/store/sqlite/own/limit-store.ts'
import { openShared } from '../../../../src/adapters/store/sqlite/shared-stores.ts'
import { createJobStore } from '../../../../src/adapters/store/sqlite/stores/sqlite-job-store.ts'
import type { StoreChannels } from '../../../../src/adapters/store/sqlite/stores/store-channels.ts'
import type { Channel } from '../../../../src/adapters/store/sqlite/threads/channel.ts'
import { createWriteBatch, type RunBatch } from '../../../../src/adapters/store/sqlite/threads/run-batch.ts'
import type { Operations } from '../../../../src/adapters/store/sqlite/threads/store-thread-protocol.ts'
import type { OpenStore } from '../../../../src/adapters/store/statements/operation.ts'
import { accountDirectory } from '../../../../src/adapters/store/stores/account-directory.ts'
import { createAccountStore } from '../../../../src/adapters/store/stores/account-store.ts'
import { assetSteps, createAssetStore } from '../../../../src/adapters/store/stores/asset-store.ts'
import { createIdempotencyStore } from '../../../../src/adapters/store/stores/idempotency-store.ts'
import { keyStore } from '../../../../src/adapters/store/stores/key-store.ts'
import { ledgerStore } from '../../../../src/adapters/store/stores/ledger/ledger-store.ts'
import { START, type StoreOpener } from '../../../contracts/store-under-test.ts'

interface Call {
  readonly name: string
  readonly input: unknown
  readonly settle: PromiseWithResolvers<unknown>
}

class InlineChannel<Ops extends Operations> {
  readonly #run: RunBatch
  #calls: Call[] = []
  #loses = false

  constructor(run: RunBatch) {
    this.#run = run
  }

  call(name: string, input: unknown): Promise<unknown> {
    const settle = Promise.withResolvers<unknown>()
    if (this.#calls.push({ name, input, settle }) === 1) setImmediate(() => this.#flush())
    return settle.promise
  }

  /** The next transaction is as if the process had died before its commit. */
  loseNext(): void {
    this.#loses = true
  }

  asChannel(): Channel<Ops> {
    return this as unknown as Channel<Ops>
  }

  #flush(): void {
    const calls = this.#calls
    this.#calls = []
    if (this.#loses) {
      this.#loses = false
      for (const { settle } of calls) settle.reject(new Error('the process died'))
      return
    }
    const [results, failures] = this.#run([calls.map(({ name }) => name), calls.map(({ input }) => input)])
    for (const [index, { settle }] of calls.entries()) {
      const failure = failures?.get(index)
      if (failure === undefined) settle.resolve(results[index])
      else settle.reject(new Error(failure.message))
    }
  }
}

/** With the database itself, for tests that reach around the store. */
export async function openInlineStore() {
  const database = new DatabaseSync(':memory:')
  applyMigrations(database, loadMigrations(MIGRATIONS_DIRECTORY), START)
  const write = new InlineChannel<StoreChannels['write'] extends Channel<infer Ops> ? Ops : never>(
    createWriteBatch(database, prepareWriteOperations(database)),
  )
  const reads = prepareReadOperations(database) as Operations
  const read = new InlineChannel<StoreChannels['read'] extends Channel<infer Ops> ? Ops : never>(([names, inputs]) => [
    names.map((name, index) => reads[name](inputs[index] as never)),
    null,
  ])
  const channels = { write: write.asChannel(), read: read.asChannel() }
  const open: OpenStore = (store) => openShared(store, channels)
  const store = {
    jobs: createJobStore({ ...channels, clock: systemClock }),
    assets: createAssetStore(open(assetSteps)),
    accounts: createAccountStore(open),
    keys: createIdempotencyStore(open),
    directory: open(accountDirectory),
    apiKeys: open(keyStore),
    ledger: open(ledgerStore),
    limits: open(limitStore),
    loseNextWrites: () => write.loseNext(),
  }
  return { store, database, close: async () => database.close() }
}

export const inlineOpener: StoreOpener = { open: openInlineStore }
