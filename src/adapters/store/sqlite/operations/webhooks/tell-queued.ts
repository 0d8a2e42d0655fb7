/**
 * The notice that jobs wait, in the transaction that makes them. Other moves of a job are told by triggers; a submit is too frequent for
 * one, because a trigger costs every insert, also of jobs that nobody is told of.
 */
import type { DatabaseSync } from 'node:sqlite'

/** The hook of a job that only the endpoints of its account are told of. */
export const FOLLOWED = ''

export function prepareTellQueued(database: DatabaseSync): (firstSeq: number, lastSeq: number) => void {
  const tell = database.prepare(`
    INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, job.account_id, 'job.queued', job.id, job.created_at,
      (SELECT facts FROM webhook_job_facts WHERE seq = job.seq), job.created_at
    FROM job CROSS JOIN webhook_endpoint AS endpoint
    WHERE job.seq BETWEEN ? AND ? AND job.hook IS NOT NULL
      AND endpoint.id IN (
        SELECT job.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = job.account_id AND kind = 'account')
      AND endpoint.state = 'enabled' AND instr(endpoint.events, ' job.queued ') > 0
    ORDER BY job.seq`)
  return (firstSeq, lastSeq) => void tell.run(firstSeq, lastSeq)
}
