/**
 * Runs a batch of operations inside a store thread.
 *
 * Writes share one transaction and so one fsync. The common case pays nothing for isolation: only when an operation throws
 * is the batch undone and run again, each operation in a transaction of its own, so that the faulty one fails alone.
 * Savepoints would not help: on a full disk SQLite rolls the whole transaction back. So an operation may depend on nothing
 * but the database and its input.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Synchronous } from '../database/sqlite-connections.ts'
import { isDamage, isDiskFull } from '../database/sqlite-error.ts'
import { UnrepairableDamage } from './damage-control.ts'
import type { DiskReserve } from './disk-reserve.ts'
import type { Answer, Batch, Failure, Operations } from './store-thread-protocol.ts'

export type RunBatch = (batch: Batch) => Answer

function toFailure(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error)
  return { kind: isDiskFull(error) ? 'disk_full' : isDamage(error) ? 'damaged' : 'defect', message }
}

const NO_ROOM: Failure = { kind: 'disk_full', message: 'the disk is full' }

function failAll(count: number, error: unknown): Answer {
  const failure = toFailure(error)
  return [[], new Map(Array.from({ length: count }, (_, index) => [index, failure]))]
}

function call(operations: Operations, name: string, input: unknown): unknown {
  const operation = operations[name]
  if (operation === undefined) throw new Error(`The store thread knows no operation ${name}.`)
  return operation(input as never)
}

interface WriteBatchOptions {
  /** Operations that need no sync: they survive the process at once, and a power cut once a later write is synced. */
  readonly relaxed: ReadonlySet<string>
  readonly synchronous: Synchronous
  /** Operations that may use the reserve when the disk is full; while it is spent, no other operation is tried. */
  readonly essential: ReadonlySet<string>
  readonly reserve: Pick<DiskReserve, 'isSpent' | 'spend'>
  /** Repairs a damaged database, or throws, which ends the thread. */
  repair(): void
}

const NO_RESERVE = { isSpent: false, spend: () => false }
const NONE: ReadonlySet<string> = new Set()
const cannotRepair = () => {
  throw new UnrepairableDamage('the database is damaged')
}

export function createWriteBatch(
  database: DatabaseSync,
  operations: Operations,
  {
    relaxed = NONE,
    synchronous = 'FULL',
    essential = NONE,
    reserve = NO_RESERVE,
    repair = cannotRepair,
  }: Partial<WriteBatchOptions> = {},
): RunBatch {
  let level = synchronous
  // A commit without a sync lies in the WAL, and the next commit that syncs makes it durable too.
  function setLevel(names: readonly string[]): void {
    const wanted = names.every((name) => relaxed.has(name)) ? 'NORMAL' : synchronous
    if (wanted === level) return
    database.exec(`PRAGMA synchronous = ${wanted}`)
    level = wanted
  }

  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')

  /** `isWhole`: every operation ran, so that a failure is one of the commit and concerns them all. */
  function runTogether([names, inputs]: Batch): { readonly answer: Answer; readonly isWhole: boolean } {
    let isWhole = false
    try {
      setLevel(names)
      begin.run()
      const results = names.map((name, index) => call(operations, name, inputs[index]))
      isWhole = true
      commit.run()
      return { answer: [results, null], isWhole }
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      if (error instanceof UnrepairableDamage) throw error
      return { answer: failAll(names.length, error), isWhole }
    }
  }

  function runOne(name: string, input: unknown): Answer {
    const isEssential = essential.has(name)
    if (reserve.isSpent && !isEssential) return [[], new Map([[0, NO_ROOM]])]
    const { answer } = runTogether([[name], [input]])
    const problem = answer[1]?.get(0)?.kind
    if (problem === 'damaged') repair()
    else if (problem !== 'disk_full' || !isEssential || !reserve.spend()) return answer
    return runTogether([[name], [input]]).answer
  }

  function runOneByOne([names, inputs]: Batch): Answer {
    const failures = new Map<number, Failure>()
    const results = names.map((name, index) => {
      const [[result], failed] = runOne(name, inputs[index])
      const failure = failed?.get(0)
      if (failure !== undefined) failures.set(index, failure)
      return result
    })
    return [results, failures]
  }

  return (batch) => {
    if (reserve.isSpent) return runOneByOne(batch)
    const { answer, isWhole } = runTogether(batch)
    const failures = answer[1]
    if (failures === null) return answer
    if (failures.get(0)?.kind !== 'defect') return runOneByOne(batch)
    return isWhole || batch[0].length === 1 ? answer : runOneByOne(batch)
  }
}

/** Reads of one batch see one state of the database, which includes everything acknowledged before the batch was sent. */
export function createReadBatch(database: DatabaseSync, operations: Operations): RunBatch {
  const begin = database.prepare('BEGIN')
  const commit = database.prepare('COMMIT')
  return ([names, inputs]) => {
    let failures: Map<number, Failure> | null = null
    begin.run()
    const results = names.map((name, index) => {
      try {
        return call(operations, name, inputs[index])
      } catch (error) {
        failures ??= new Map()
        failures.set(index, toFailure(error))
        return undefined
      }
    })
    try {
      commit.run()
    } catch (error) {
      // It may fail with what a read of this batch failed with, and has ended the transaction nevertheless.
      if (failures === null || database.isTransaction) throw error
    }
    return [results, failures]
  }
}
