/** What work costs a Postgres server: bytes of its log, and statements that this process sends. */
import { Client } from 'pg'

let [statements, notifies] = [0, 0]
const ask = Client.prototype.query
Client.prototype.query = function count(this: Client, ...args: Parameters<typeof ask>) {
  const [first] = args as readonly unknown[]
  const text = typeof first === 'string' ? first : (first as { readonly text?: string } | null)?.text
  statements += 1
  if (text?.includes('pg_notify') === true) notifies += 1
  return ask.apply(this, args)
} as typeof ask

/** Everything that this process has sent so far, begin and commit included. */
export function countStatements(): number {
  return statements
}

/** Those of them that wake listeners. */
export function countNotifies(): number {
  return notifies
}

/** In bytes. */
export async function readLogPosition(client: Client): Promise<number> {
  const { rows } = await client.query<{ n: string }>(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS n`)
  return Number(rows[0]?.n)
}
