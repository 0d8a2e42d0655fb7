/**
 * Claim: one statement finds the best candidate, guarded by its account's room. It looks at the head of each waiting
 * account's queue and at nothing behind it, so a backlog costs nothing, nor does an account that is at its limit.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Claim, ClaimRequest } from '../../../../domain/jobs/job-store.ts'
import { type CompleteJob, JOB_COLUMNS, type JobRow, type StoredJob, toJob } from './job-row.ts'
import { prepareRows } from './statement.ts'

export type ClaimInput = readonly [pool: string, workerId: string, leaseId: string, leaseUntil: number, now: number]

type InputFields = [name: string, hash: string, sizeBytes: number, contentType: string]

export type ClaimAnswer =
  | readonly [
      job: StoredJob,
      workflow: string,
      inputs: readonly InputFields[],
      needsExtraData: number,
      sealedExtraData: Uint8Array | null,
    ]
  | null

export function toClaimInput({ pool, workerId, leaseId, leaseUntil, now }: ClaimRequest): ClaimInput {
  return [pool, workerId, leaseId, leaseUntil.getTime(), now.getTime()]
}

export function toClaim(answer: ClaimAnswer, leaseId: string): Claim | null {
  if (answer === null) return null
  const [job, workflow, inputs, needsExtraData, sealedExtraData] = answer
  return {
    job: toJob(job),
    leaseId,
    workflow,
    inputs: inputs.map(([name, hash, sizeBytes, contentType]) => ({ name, hash, sizeBytes, contentType })),
    needsExtraData: needsExtraData === 1,
    sealedExtraData,
  }
}

// A job whose time is over is left to the sweep that ends it. Across accounts the one with the fewest running jobs comes first, then the one whose head has waited longest.
const TAKE = `
  UPDATE job SET status = 'running', started_at = ?5, lease_id = ?3, lease_until = ?4, worker_id = ?2,
    attempt = attempt + 1, version = version + 1
  WHERE seq = (
    SELECT head FROM (
      SELECT running, (
        SELECT seq FROM job WHERE status = 'queued' AND account_id = account.id AND pool = ?1 AND expires_at > ?5
        ORDER BY priority DESC, seq LIMIT 1) AS head
      FROM account INDEXED BY account_waiting
      WHERE queued > 0 AND running < max_running)
    WHERE head IS NOT NULL ORDER BY running, head LIMIT 1)
  RETURNING ${JOB_COLUMNS}, needs_extra_data, input_count`

export function prepareClaim(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (input: ClaimInput) => ClaimAnswer {
  const take = prepareRows<[...JobRow, needsExtraData: number, inputCount: number]>(database, TAKE)
  const takeRoom = database.prepare(`
    UPDATE account SET queued = queued - 1, running = running + 1 WHERE id = ? AND running < max_running`)
  const selectWorkflow = prepareRows<[string]>(database, 'SELECT text FROM job_workflow WHERE seq = ?')
  const selectInputs = prepareRows<InputFields>(
    database,
    'SELECT name, hash, size_bytes, content_type FROM job_input WHERE seq = ? ORDER BY position',
  )
  const takeSecret = prepareRows<[Uint8Array]>(database, 'DELETE FROM job_secret WHERE seq = ? RETURNING sealed')
  return (input) => {
    const taken = take.get(...input)
    if (taken === undefined) return null
    const [needsExtraData, inputCount] = taken.slice(-2) as [number, number]
    const row = taken.slice(0, -2) as unknown as JobRow
    const [seq, id, accountId] = row
    if (takeRoom.run(accountId).changes !== 1) throw new Error(`Account ${accountId} has no room for job ${id}.`)
    return [
      completeJob(row),
      selectWorkflow.get(seq)?.[0] ?? '',
      inputCount === 0 ? [] : selectInputs.all(seq),
      needsExtraData,
      needsExtraData === 1 ? (takeSecret.get(seq)?.[0] ?? null) : null,
    ]
  }
}
