/** One pool of connections: how each of them is opened, and which settings of the server it has. */
import { type Pool, TypeOverrides } from 'pg'
import type { Log } from '../../../../../lib/log.ts'
import { type ClientNeeds, createPool, type PostgresPlace } from '../../../../../lib/postgres/driver.ts'

export interface ConnectionOptions extends PostgresPlace {
  /** All pools together. */
  readonly maxConnections?: number
  /** How long an answer may take before its connection is given up; left out: by the kind of statement. */
  readonly answerMs?: number
  readonly log: Log
}

const INT8 = 20
const IDLE_MS = 30_000

const SHARED_SETTINGS = {
  // Planning a claim takes longer than running it; none of our statements profits from a plan for its values.
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  idle_in_transaction_session_timeout: '10000',
  lock_timeout: '5000',
}

// Seconds. A machine that vanished must not keep its connections, of which a server has few, for the two hours that systems wait.
const OF_LOST_CLIENTS = { tcp_keepalives_idle: '60', tcp_keepalives_interval: '10', tcp_keepalives_count: '3' }

/** What every connection of the store has in common; `settings` are the server's, for this connection. */
export function toNeeds(settings: Readonly<Record<string, string>>): ClientNeeds {
  const types = new TypeOverrides()
  // All our numbers are safe integers: times, counts, bytes and micro-dollars.
  types.setTypeParser(INT8, Number)
  return { name: 'atelier', types, settings: { ...OF_LOST_CLIENTS, ...settings } }
}

export function openPool(options: ConnectionOptions, max: number, settings: Record<string, string>): Pool {
  const needs = toNeeds({ ...SHARED_SETTINGS, ...settings })
  const pool = createPool(options, { ...needs, max, idleTimeoutMillis: IDLE_MS, pipeline: true })
  // A connection that breaks while it is idle is replaced at its next use.
  pool.on('error', (error) => options.log.debug({ err: error }, 'an idle connection to Postgres has ended'))
  return pool
}
