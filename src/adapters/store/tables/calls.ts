/** Calls of models: those under way, those of the queue, and those whose key may be repeated. */
import type { TraceContext } from '../../../../lib/tracing/trace-context.ts'
import { readKeptTrace, writeTraceContext } from '../../../../lib/tracing/trace-context.ts'
import type { CallPlan, Served } from '../../../domain/models/calls/call-plan.ts'
import type { CallProgress, StoredRefusal } from '../../../domain/models/calls/call-store.ts'
import type { RequestState } from '../../../domain/models/queue/request-store.ts'
import { bytes, type Column, flag, integer, json, moment, named, nullable, stays, table, text } from './table.ts'

const trace: Column<TraceContext | null> = {
  ...nullable(text()),
  decode: (stored) => readKeptTrace(stored as string | null),
  encode: (value) => (value === null ? null : writeTraceContext(value)),
}

const HELD = 'whoever held it has stopped: the call is taken up anew'

export const routerCall = table('router_call', ['seq'], {
  seq: integer(),
  id: text(),
  accountId: text(),
  key: nullable(text()),
  fingerprint: text(),
  isQueued: named('queued', flag('boolean')),
  state: text<RequestState>(),
  modelId: named('model', text()),
  baseUrl: text(),
  createdAt: moment(),
  expiresAt: moment(),
  startedAt: nullable(moment()),
  attempt: integer('integer'),
  holdMicros: nullable(integer()),
  spendMicros: integer(),
  isCostly: named('costly', flag('boolean')),
  progress: nullable(json<CallProgress>()),
  owner: stays(HELD, nullable(text())),
  fence: integer(),
  leaseUntil: stays(HELD, moment()),
  isSent: named('sent', flag('boolean')),
  isStopAsked: named('stop_asked', flag('boolean')),
  losses: integer('integer'),
  task: nullable(text()),
  jobId: nullable(text()),
  hook: nullable(text()),
  trace,
  plan: nullable(json<CallPlan>()),
  attemptIndex: integer('integer'),
})

/** The bodies of queued calls that have not been dispatched for good: exactly one of `body` and `hash`. */
export const routerInput = table('router_input', ['seq'], {
  seq: integer(),
  body: nullable(bytes()),
  hash: nullable(text()),
  sizeBytes: integer(),
})

export const routerResult = table('router_result', ['seq'], {
  seq: integer(),
  accountId: nullable(text()),
  contentType: nullable(text()),
  body: nullable(bytes()),
  hash: nullable(text()),
  sizeBytes: integer(),
  costMicros: nullable(integer()),
  refusal: nullable(json<StoredRefusal>()),
  finishedAt: moment(),
  replayUntil: nullable(moment()),
  served: nullable(json<Served>()),
})

/** What an account has under way; always equals the running rows. */
export const routerAccount = table('router_account', ['accountId'], {
  accountId: text(),
  running: integer(),
  costly: integer(),
  committedMicros: integer(),
  /** Rises with every change of the account's keys at providers. */
  keysVersion: stays('it tells processes of one store apart, none of which runs over the next', integer()),
})

/** Keys of accounts at providers. */
export const providerKey = table('provider_key', ['accountId', 'provider'], {
  accountId: text(),
  provider: text(),
  sealed: bytes(),
  lastFour: text(),
  createdAt: moment(),
  changedAt: moment(),
})
