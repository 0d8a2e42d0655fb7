/** What work costs a Postgres server: processor time, bytes of its log, and statements that this process sends. */
import { readdirSync, readFileSync } from 'node:fs'
import { Client } from 'pg'

let statements = 0
const ask = Client.prototype.query
Client.prototype.query = function count(this: Client, ...args: Parameters<typeof ask>) {
  statements += 1
  return ask.apply(this, args)
} as typeof ask

/** Everything that this process has sent so far, begin and commit included. */
export function countStatements(): number {
  return statements
}

/** In bytes. */
export async function readLogPosition(client: Client): Promise<number> {
  const { rows } = await client.query<{ n: string }>(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS n`)
  return Number(rows[0]?.n)
}

const TICK_MICROS = 10_000

/** The processor time of the server and of all its processes; 0 where the system does not tell. */
export function readServerMicros(pid: number): number {
  if (process.platform !== 'linux') return 0
  let ticks = 0
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const fields = readProcess(name)
    if (Number(name) === pid || Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * TICK_MICROS
}

/** What the system tells of a process behind its name; nothing when it has just ended. */
function readProcess(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
  } catch {
    return []
  }
}
