/**
 * The methods of a store, written once for both databases. A method is a generator that asks for statements one after the other:
 * SQLite runs it in one go inside a thread, within a shared transaction; Postgres awaits each answer, within a transaction of the
 * method's own where it writes. So a method depends on nothing but its arguments and what it is answered, and may run twice.
 *
 *   export const keyStore = defineStore<KeyStore>('apiKeys', {
 *     find: read(function* (keyId) {
 *       return (yield* get(FIND, { id: keyId })) ?? null
 *     }),
 *     revoke: durable(function* (keyId, at) { … }, { isEssential: true }),
 *   })
 *
 * `sqlite/shared-stores.ts` and `postgres/shared-stores.ts` make the port of it. A new store is added to `stores/all-stores.ts`.
 */
import type { Command, Query, Values } from './statement.ts'

/** One statement that a method asks for; `yield*` gives its answer. */
export class Asked<Answer> {
  readonly kind: 'get' | 'all' | 'run'
  readonly statement: Command
  readonly values: Values

  constructor(kind: Asked<Answer>['kind'], statement: Command, values: Values) {
    this.kind = kind
    this.statement = statement
    this.values = values
  }

  *[Symbol.iterator](): Generator<readonly Asked<unknown>[], Answer, readonly unknown[]> {
    const [answer] = yield [this]
    return answer as Answer
  }
}

export type Steps<Result> = Generator<readonly Asked<unknown>[], Result, readonly unknown[]>

/** The first row, or undefined. */
export function get<Row>(statement: Query<Row>, values: Values = {}): Asked<Row | undefined> {
  return new Asked('get', statement, values)
}

export function all<Row>(statement: Query<Row>, values: Values = {}): Asked<Row[]> {
  return new Asked('all', statement, values)
}

/** How many rows it changed. */
export function run(statement: Command, values: Values = {}): Asked<number> {
  return new Asked('run', statement, values)
}

type Answers<All extends readonly Asked<unknown>[]> = {
  [Index in keyof All]: All[Index] extends Asked<infer One> ? One : never
}

/** Statements that do not need each other's answers: they take effect in this order, and leave for a server together. */
export function* together<const All extends readonly Asked<unknown>[]>(...asked: All): Steps<Answers<All>> {
  return (yield asked) as Answers<All>
}

type Results<All extends readonly Steps<unknown>[]> = {
  [Index in keyof All]: All[Index] extends Steps<infer One> ? One : never
}

/** Steps that do not need each other's answers: their first statements leave for a server together, then their second ones, and so on. */
export function* sideBySide<const All extends readonly Steps<unknown>[]>(...all: All): Steps<Results<All>> {
  const current = all.map((steps) => steps.next([]))
  // With plain loops: every submit comes through here.
  while (current.some(({ done }) => done !== true)) {
    const asked: Asked<unknown>[] = []
    for (const step of current) if (step.done !== true) asked.push(...step.value)
    const answers = yield asked
    let from = 0
    for (let index = 0; index < all.length; index += 1) {
      const step = current[index]
      if (step.done === true) continue
      const to = from + step.value.length
      current[index] = all[index].next(answers.slice(from, to))
      from = to
    }
  }
  return current.map(({ value }) => value) as Results<All>
}

/** What was decided, and the writes that follow from it. Their answers decide nothing, so a server gets them together with its COMMIT. */
export interface Decided<Result> {
  readonly result: Result
  readonly write: () => Steps<unknown>
}

function* nothing(): Steps<void> {}

export function decided<Result>(result: Result, write: () => Steps<unknown> = nothing): Decided<Result> {
  return { result, write }
}

/** Decides and writes, one after the other. */
export function* carryOut<Result>(steps: Steps<Decided<Result>>): Steps<Result> {
  const { result, write } = yield* steps
  yield* write()
  return result
}

interface OperationOptions<Args extends readonly unknown[]> {
  /** It still runs when the disk is full, in the room that is set aside: it makes room, ends what is under way, or withdraws a right. */
  readonly isEssential?: boolean
  /** In a database that one process has to itself it need not be on disk when it is acknowledged: a power cut ends that process too. */
  readonly isRelaxedAlone?: boolean
  /** After a broken connection, when nobody knows whether it was committed, it may run again. */
  readonly isRepeatable?: boolean
  /** Its statements take effect together, or none does. Without this, only those of `durable` and `chore` do so on a server. */
  readonly isTransaction?: boolean
  /** Of a read: all its statements see the same moment, also on a server. */
  readonly isSnapshot?: boolean
  /** About how many bytes its arguments hold, when that can be much. */
  weigh?(...args: Args): number
}

/**
 * `read`: changes nothing. `report`: the same, and may take long. `durable`: written to somebody who is told so. `relaxed`: acknowledged
 * before it is on disk, because its writer repeats it or nobody misses it. `chore`: a sweep, which may take long.
 */
type Access = 'read' | 'report' | 'durable' | 'relaxed' | 'chore'

export interface Operation<Args extends readonly unknown[], Result> extends OperationOptions<Args> {
  readonly access: Access
  readonly steps: (...args: Args) => Steps<Result>
}

function withAccess(access: Access) {
  return <Args extends readonly unknown[], Result>(
    steps: (...args: Args) => Steps<Result>,
    options: OperationOptions<Args> = {},
  ): Operation<Args, Result> => ({ access, steps, ...options })
}

export const read = withAccess('read')
export const report = withAccess('report')
export const durable = withAccess('durable')
export const relaxed = withAccess('relaxed')
export const chore = withAccess('chore')

type OperationOf<Method> = Method extends (...args: infer Args) => Promise<infer Result>
  ? Operation<Args, Result>
  : never

/** The methods of a port. */
export interface DefinedStore<Port> {
  /** Unique in the program. */
  readonly name: string
  readonly operations: { readonly [Method in keyof Port]: OperationOf<Port[Method]> }
}

/** Makes the port of a store for one database. */
export type OpenStore = <Port>(store: DefinedStore<Port>) => Port

export function defineStore<Port>(name: string, operations: DefinedStore<Port>['operations']): DefinedStore<Port> {
  return { name, operations }
}

/** The store's name and the method's. */
export type OperationName = `${string}.${string}`

/** The methods of a store, whatever their types, under names that are unique in the program. */
export function listOperations({
  name,
  operations,
}: DefinedStore<unknown>): [OperationName, Operation<never, unknown>][] {
  return Object.entries(operations as Record<string, Operation<never, unknown>>).map(([method, operation]) => [
    `${name}.${method}`,
    operation,
  ])
}

/** Runs the steps with a database that answers at once. */
export function runSteps<Result>(steps: Steps<Result>, answer: (asked: Asked<unknown>) => unknown): Result {
  let step = steps.next([])
  while (step.done !== true) step = steps.next(step.value.map(answer))
  return step.value
}

/** Runs the steps with a server. */
export async function runStepsAsync<Result>(
  steps: Steps<Result>,
  answer: (asked: Asked<unknown>) => Promise<unknown>,
): Promise<Result> {
  let step = steps.next([])
  while (step.done !== true) step = steps.next(await Promise.all(step.value.map(answer)))
  return step.value
}
