/** The stores that are written once for both databases, on Postgres. What is durable is written in a transaction, which may carry an audit line. */
import {
  type Asked,
  type DefinedStore,
  listOperations,
  type Operation,
  runStepsAsync,
  type Steps,
} from '../statements/operation.ts'
import type { Query } from '../statements/statement.ts'
import type { Connections } from './database/connections.ts'
import type { Queryable } from './database/statement.ts'

type Pools = Pick<Connections, 'durable' | 'relaxed' | 'read' | 'chore'>

export function openShared<Port>(store: DefinedStore<Port>, pools: Pools): Port {
  const methods = listOperations(store).map(([name, operation]) => [
    name.slice(store.name.length + 1),
    (...args: readonly unknown[]) => runOperation(operation, pools, args),
  ])
  return Object.fromEntries(methods) as Port
}

function runOperation(operation: Operation<never, unknown>, pools: Pools, args: readonly unknown[]): Promise<unknown> {
  const { access, steps, isRepeatable = false, isSnapshot = false } = operation
  const { isTransaction = access === 'durable' || access === 'chore' || isSnapshot } = operation
  const pool = pools[access === 'report' ? 'chore' : access]
  const body = (db: Queryable) => runOn(db, steps(...(args as never)))
  return isTransaction ? pool.transaction(body, { isRepeatable, isSnapshot }) : body(pool)
}

export function runOn<Result>(db: Queryable, steps: Steps<Result>): Promise<Result> {
  return runStepsAsync(steps, (asked) => ask(db, asked))
}

function ask(db: Queryable, { kind, statement, values }: Asked<unknown>): Promise<unknown> {
  if (kind === 'run') return db.run(statement, values)
  const asked = statement as Query<unknown>
  return kind === 'get' ? db.get(asked, values) : db.all(asked, values)
}
