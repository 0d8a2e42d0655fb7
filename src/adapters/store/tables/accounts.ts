/** Accounts, what they own beside jobs and assets, and what is counted for them. */
import type { AccountStatus } from '../../../domain/accounts/account.ts'
import type { LimitOverrides } from '../../../domain/accounts/limits/tiers.ts'
import type { DeploymentState } from '../../../domain/deployments/deployment.ts'
import { bytes, integer, json, moment, named, nullable, only, stays, table, text, uuid } from './table.ts'

const COUNTED = 'a counter, made anew from the rows that it counts'
const counter = () => stays(COUNTED, integer())

/** In Postgres what submits write; what claims and ends write is in `accountLoad`, so that neither waits for the other. */
export const account = table('account', ['id'], {
  id: text(),
  maxRunning: only('sqlite', integer()),
  maxQueued: integer(),
  submitted: only('postgres', counter()),
  queued: only('sqlite', counter()),
  running: only('sqlite', counter()),
  succeeded: only('sqlite', counter()),
  canceled: only('sqlite', counter()),
  failed: only('sqlite', counter()),
  expired: only('sqlite', counter()),
  served: only('sqlite', integer()),
  sharePercent: only('sqlite', integer('integer')),
})

export const accountLoad = table(
  'account_load',
  ['accountId'],
  {
    accountId: text(),
    maxRunning: integer(),
    running: counter(),
    started: counter(),
    served: integer(),
    sharePercent: integer('integer'),
    succeeded: counter(),
    canceled: counter(),
    failed: counter(),
    expired: counter(),
  },
  { only: 'postgres' },
)

export const fairShare = table(
  'fair_share',
  ['pool', 'accountId'],
  { pool: text(), accountId: text(), usedMs: integer(), changedAt: moment() },
  { staysFor: 'who was served how long before a move does not count behind it' },
)

export const accountProfile = table('account_profile', ['id'], {
  id: named('account_id', text()),
  name: text(),
  tier: text(),
  overrides: json<LimitOverrides>(),
  status: text<AccountStatus>(),
  createdAt: moment(),
  version: integer(),
})

export const apiKey = table('api_key', ['id'], {
  id: text(),
  accountId: text(),
  name: text(),
  scopes: nullable(json<readonly string[]>()),
  createdAt: moment(),
  expiresAt: nullable(moment()),
  revokedAt: nullable(moment()),
  lastUsedAt: nullable(moment()),
  digest: bytes(),
  previousDigest: nullable(bytes()),
  previousUntil: nullable(moment()),
  version: integer(),
  /** Those that it may call and see; null: all. */
  endpoints: nullable(json<readonly string[]>()),
})

export const deployment = table('deployment', ['id'], {
  id: text(),
  accountId: nullable(text()),
  state: text<DeploymentState>(),
  workers: integer('integer'),
  idleAfterMs: named('idle_after', nullable(integer())),
  createdAt: moment(),
  changedAt: moment(),
  version: integer(),
})

export const auditLog = table('audit_log', ['seq'], {
  seq: integer(),
  actor: text(),
  action: text(),
  subject: text(),
  at: moment(),
  details: json<Readonly<Record<string, unknown>>>(),
  outcome: text(),
})

export const rateLimit = table('rate_limit', ['accountId'], { accountId: text(), bookedUntil: integer() })

export const rateWindow = table(
  'rate_window',
  ['accountId'],
  { accountId: text(), endsAt: moment(), used: integer(), granted: only('postgres', integer()) },
  { staysFor: 'a window of seconds, long over when a move has ended' },
)

export const promptNumber = table('prompt_number', ['accountId'], { accountId: text(), next: integer() })

export const historyClear = table('history_clear', ['accountId'], { accountId: text(), at: moment() })

export const userFile = table('user_file', ['id'], {
  id: integer(),
  accountId: text(),
  path: text(),
  sizeBytes: integer(),
  createdAt: moment(),
  modifiedAt: moment(),
  bytes: bytes(),
})

export const idempotencyKey = table('idempotency_key', ['accountId', 'key'], {
  accountId: text(),
  key: text(),
  expiresAt: moment(),
  jobId: nullable(uuid()),
  assetId: nullable(text()),
  batchId: nullable(uuid()),
})
