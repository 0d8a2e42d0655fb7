/**
 * One connection that is held from begin to end, for work that belongs to a connection: a lock of the session, statements outside
 * any transaction, cursors. Its statements may take long; but it waits only briefly for a lock, so that transactions queued
 * behind it do not wait for both.
 */
import type { Client } from 'pg'
import { createClient, type PostgresPlace } from '../../../../../lib/postgres/driver.ts'
import { toNeeds } from './pool.ts'
import { toStoreError } from './postgres-error.ts'
import { onClient, type Queryable } from './statement.ts'

export interface Session extends Queryable, AsyncDisposable {
  /** Runs the body in one transaction, once. */
  transaction<Result>(body: () => Promise<Result>): Promise<Result>
  readonly client: Client
}

const SETTINGS = { statement_timeout: '0', lock_timeout: '5000', jit: 'off' }

export async function openSession(place: PostgresPlace): Promise<Session> {
  const client = createClient(place, toNeeds(SETTINGS))
  try {
    await client.connect()
  } catch (error) {
    await client.end().catch(() => {})
    throw toStoreError(error)
  }
  return {
    ...onClient(client),
    client,
    async transaction(body) {
      await client.query('BEGIN')
      try {
        const result = await body()
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {})
        throw toStoreError(error)
      }
    },
    async [Symbol.asyncDispose]() {
      await client.end().catch(() => {})
    },
  }
}
