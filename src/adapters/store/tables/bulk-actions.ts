/** What is done to many jobs at once, and what became of each of them. */
import type { AskedJobs, BulkKind, BulkReason, BulkState, ItemOutcome } from '../../../domain/jobs/bulk/bulk-action.ts'
import { flag, integer, json, moment, nullable, table, text } from './table.ts'

export const bulkAction = table('bulk_action', ['id'], {
  id: text(),
  // An account's id; empty for the operator's.
  ownerId: text(),
  keyId: nullable(text()),
  actor: nullable(text()),
  kind: text<BulkKind>(),
  asked: json<AskedJobs>(),
  isOnlyWaiting: { ...flag(), name: 'only_waiting' },
  priority: nullable(integer()),
  hasMore: flag(),
  idempotencyKey: nullable(text()),
  digest: text(),
  total: integer(),
  done: integer(),
  skipped: integer(),
  refused: integer(),
  parts: integer(),
  state: text<BulkState>(),
  reason: nullable(json<BulkReason>()),
  createdAt: moment(),
  changedAt: moment(),
  endedAt: nullable(moment()),
  expiresAt: moment(),
  // Which process deals with it, and until when no other one does.
  leaseId: nullable(text()),
  heldUntil: nullable(moment()),
})

export const bulkItem = table('bulk_item', ['actionId', 'place'], {
  actionId: text(),
  place: integer(),
  part: integer(),
  accountId: text(),
  jobId: text(),
  outcome: text<ItemOutcome>(),
  madeId: nullable(text()),
  code: nullable(text()),
  message: nullable(text()),
})
