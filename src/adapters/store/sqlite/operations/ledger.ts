/** Holds inside of an operation that is written for SQLite alone. */
import type { DatabaseSync } from 'node:sqlite'
import { type CloseInput, closeMany, type HoldInput, holdMany, lockPurses } from '../../stores/ledger/holds.ts'
import { runOn } from '../shared-stores.ts'
import { openStatements } from '../statements.ts'

interface Ledger {
  /** Whether the hold would succeed now. */
  canHold(input: HoldInput): boolean
  /** false: the account has not enough credit, and nothing happened. */
  hold(input: HoldInput): boolean
  close(input: CloseInput): void
}

export function prepareLedger(database: DatabaseSync): Ledger {
  const db = openStatements(database)
  return {
    canHold: (input) => runOn(db, lockPurses([input])).canHold(input),
    hold: (input) => runOn(db, holdMany([input]))[0] ?? false,
    close: (input) => void runOn(db, closeMany([input])),
  }
}
