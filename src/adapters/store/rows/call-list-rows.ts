/** The statement behind the list of calls, the same for both stores but for its parameters, and how its rows are read. */
import type { CallStatus, ListedCall } from '../../../domain/models/calls/call-list.ts'

export type CallListRow = [
  seq: number,
  id: string,
  model: string,
  status: CallStatus,
  queued: number | boolean,
  createdAt: number,
  finishedAt: number | null,
  costMicros: number | null,
  refusal: string | null,
  jobId: string | null,
]

const STATUS = `CASE state WHEN 'waiting' THEN 'queued' WHEN 'done' THEN CASE WHEN refusal IS NULL THEN 'succeeded' ELSE 'failed' END
  WHEN 'unusable' THEN CASE WHEN refusal IS NULL THEN 'succeeded' ELSE 'failed' END ELSE state END`

interface CallListWords {
  readonly account: string
  readonly before: string
  /** Both null where every one is wanted. */
  readonly model: string
  readonly status: string
  readonly limit: string
}

/** Newest first. A filter walks the calls of the account, which are kept for a day. */
export function callListSql({ account, before, model, status, limit }: CallListWords): string {
  return `SELECT router_call.seq, id, model, ${STATUS}, queued, created_at, finished_at, cost_micros, refusal, job_id
    FROM router_call LEFT JOIN router_result ON router_result.seq = router_call.seq
    WHERE router_call.account_id = ${account} AND router_call.seq < ${before}
      AND (${model} IS NULL OR model = ${model}) AND (${status} IS NULL OR ${STATUS} = ${status})
    ORDER BY router_call.seq DESC LIMIT ${limit}`
}

export function toListedCall(row: CallListRow): ListedCall {
  const [seq, id, modelId, status, queued, createdAt, finishedAt, costMicros, refusal, jobId] = row
  return {
    ...{ seq, id, modelId, status, isQueued: Boolean(queued), costMicros, jobId },
    createdAt: new Date(createdAt),
    finishedAt: finishedAt === null ? null : new Date(finishedAt),
    refusal: refusal === null ? null : (JSON.parse(refusal) as ListedCall['refusal']),
  }
}
