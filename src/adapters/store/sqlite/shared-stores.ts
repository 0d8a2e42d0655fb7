/** The stores that are written once for both databases, on SQLite: their methods run in its threads, under their names. */
import type { DatabaseSync } from 'node:sqlite'
import {
  type DefinedStore,
  listOperations,
  type Operation,
  type OperationName,
  runSteps,
  type Steps,
} from '../statements/operation.ts'
import { ALL_STORES } from '../stores/all-stores.ts'
import { limitStore } from './own/limit-store.ts'
import { jobLists } from './own/list-jobs.ts'
import { poolDemands } from './own/pool-demands.ts'
import { recordReads } from './own/run-records.ts'
import { summarySteps } from './own/search-walks.ts'
import { submits } from './own/submits.ts'
import { openStatements, type Statements } from './statements.ts'

type SharedInput = readonly unknown[]

/** By the name of the store and of the method; the input is the list of its arguments. */
export type SharedOperations = Readonly<Record<OperationName, (args: SharedInput) => unknown>>

interface SharedChannel {
  call(name: OperationName, args: SharedInput, weight?: number): Promise<unknown>
}

interface SharedChannels {
  readonly read: SharedChannel
  readonly write: SharedChannel
}

type Thread = 'reader' | 'writer'

function threadOf({ access }: Operation<never, unknown>): Thread {
  return access === 'read' || access === 'report' ? 'reader' : 'writer'
}

const OWN_STORES = [jobLists, limitStore, poolDemands, recordReads, submits, summarySteps]
const OPERATIONS = [...ALL_STORES, ...OWN_STORES].flatMap(listOperations)

export function prepareShared(database: DatabaseSync, thread: Thread): SharedOperations {
  const statements = openStatements(database)
  const own = OPERATIONS.filter(([, operation]) => threadOf(operation) === thread)
  return Object.fromEntries(
    own.map(([name, { steps }]) => [name, (args: SharedInput) => runOn(statements, steps(...(args as never)))]),
  )
}

export function runOn<Result>(statements: Statements, steps: Steps<Result>): Result {
  return runSteps(steps, ({ kind, statement, values }) => statements[kind](statement as never, values))
}

/** Those that are acknowledged without a sync. */
export const RELAXED_SHARED = OPERATIONS.filter(
  ([, { access, isRelaxedAlone }]) => access === 'relaxed' || isRelaxedAlone,
).map(([name]) => name)

/** Those that still run when the disk is full. */
export const ESSENTIAL_SHARED = OPERATIONS.filter(([, { isEssential }]) => isEssential).map(([name]) => name)

export function openShared<Port>(store: DefinedStore<Port>, { read, write }: SharedChannels): Port {
  const methods = listOperations(store).map(([name, operation]) => {
    const channel: SharedChannel = threadOf(operation) === 'reader' ? read : write
    const method = (...args: SharedInput) => channel.call(name, args, operation.weigh?.(...(args as never)))
    return [name.slice(store.name.length + 1), method]
  })
  return Object.fromEntries(methods) as Port
}
