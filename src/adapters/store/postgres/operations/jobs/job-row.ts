/** A live job (`job`) and an ended one (`job_done`) give rows of the same shape, so one statement can ask for both. */
export const LIVE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, NULL::bigint AS completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, NULL::text AS error,
  NULL::uuid AS reused_from`

export const DONE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, error, reused_from`
