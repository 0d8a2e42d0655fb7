/** One pool of connections: how each of them is opened, and which settings of the server it has. */
import { type ClientConfig, Pool, type PoolConfig, TypeOverrides } from 'pg'
import type { Log } from '../../../../../lib/log.ts'

export interface ConnectionOptions {
  readonly url: string
  /** In place of what the URL says. */
  readonly password?: string | undefined
  readonly ssl?: PoolConfig['ssl']
  /** All pools together. */
  readonly maxConnections?: number
  /** How long an answer may take before its connection is given up; left out: by the kind of statement. */
  readonly answerMs?: number
  readonly log: Log
}

const INT8 = 20
const CONNECT_MS = 5000
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

/** What every connection has in common; `settings` are the server's, for this connection. */
export function toClientConfig(
  { url, password, ssl }: Omit<ConnectionOptions, 'log'>,
  settings: Readonly<Record<string, string>>,
): ClientConfig {
  const types = new TypeOverrides()
  // All our numbers are safe integers: times, counts, bytes and micro-dollars.
  types.setTypeParser(INT8, Number)
  return {
    connectionString: url,
    ...(password !== undefined && { password }),
    ...(ssl !== undefined && { ssl }),
    types,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'atelier',
    options: Object.entries({ ...OF_LOST_CLIENTS, ...settings })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
  }
}

export function openPool(options: ConnectionOptions, max: number, settings: Record<string, string>): Pool {
  const pool = new Pool({
    ...toClientConfig(options, { ...SHARED_SETTINGS, ...settings }),
    max,
    // Statements leave without waiting for the answers to those before them.
    pipeline: true,
    idleTimeoutMillis: IDLE_MS,
  } as PoolConfig)
  // A connection that breaks while it is idle is replaced at its next use.
  pool.on('error', (error) => options.log.debug({ err: error }, 'an idle connection to Postgres has ended'))
  // One that breaks while it is in use fails the statements on it. It also says so by an event, which must have a listener: an
  // error event without one would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}
