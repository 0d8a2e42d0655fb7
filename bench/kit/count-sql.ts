/** Counts what this process sends to Postgres, by putting itself between the service and its client library. */
import { Client } from 'pg'

export interface SqlCounts {
  /** Everything that is sent, BEGIN and COMMIT included. */
  readonly statements: number
  /** Those of them that wake listeners. */
  readonly notifies: number
}

/** From now on; the function tells what was sent so far. */
export function countSql(): () => SqlCounts {
  let [statements, notifies] = [0, 0]
  const ask = Client.prototype.query
  Client.prototype.query = function count(this: Client, ...args: Parameters<typeof ask>) {
    const [first] = args as readonly unknown[]
    const text = typeof first === 'string' ? first : ((first as { text?: string } | null)?.text ?? '')
    statements += 1
    if (text.includes('pg_notify')) notifies += 1
    return ask.apply(this, args)
  } as typeof ask
  return () => ({ statements, notifies })
}
