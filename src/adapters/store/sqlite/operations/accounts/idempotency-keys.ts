/** Idempotency keys inside the transactions that claim them. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyHolder } from '../../../../../domain/idempotency/idempotency-key.ts'
import { claimKeys, findHolders } from '../../../stores/idempotency-store.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'

interface KeyQuery {
  readonly accountId: string
  readonly key: string
  readonly now: number
}

/** What holds the key, or null when it is free. */
export function prepareFindHolder(database: DatabaseSync): (query: KeyQuery) => KeyHolder | null {
  const statements = openStatements(database)
  return ({ now, ...asked }) => runOn(statements, findHolders([{ ...asked, now: new Date(now) }]))[0] ?? null
}

interface ClaimedKey extends Omit<KeyQuery, 'now'> {
  readonly expiresAt: number
  readonly jobId?: string
  readonly batchId?: string
}

/** Takes a key that `prepareFindHolder` found free in the same transaction, also when an expired claim of it has not been swept yet. */
export function prepareClaimKey(database: DatabaseSync): (claim: ClaimedKey) => void {
  const statements = openStatements(database)
  return ({ expiresAt, ...claim }) => {
    const until = new Date(expiresAt)
    runOn(statements, claimKeys([{ ...claim, now: until, expiresAt: until }]))
  }
}
