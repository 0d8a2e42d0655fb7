/** The rows of new jobs: the most frequent write, so it runs few statements, and none for what a job has not. */
import type { NewJobRow } from '../../../rows/jobs/new-job.ts'
import { toColumns } from '../../../rows/jobs/new-job.ts'
import { type Asked, get, run, type Steps, together } from '../../../statements/operation.ts'
import { command, query, sqliteOnly } from '../../../statements/statement.ts'
import { flag, shape } from '../../../tables/table.ts'

// Whether somebody is told of all jobs of the account.
const COUNT = query(
  'jobs.countNew',
  shape({ isFollowed: flag() }),
  sqliteOnly(`UPDATE account SET queued = queued + :count WHERE id = :accountId
    RETURNING EXISTS (SELECT 1 FROM webhook_endpoint WHERE account_id = account.id AND kind = 'account') AS is_followed`),
)
const INSERT = command(
  'jobs.insert',
  sqliteOnly(`
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, metadata, needs_extra_data, input_count,
      price_second, price_minimum, needs, recipe, title, hook, not_before, queue_until)
    VALUES (:id, :accountId, :pool, 'queued', :priority, :createdAt, :expiresAt, :metadata, :flags, :inputCount,
      :priceSecond, :priceMinimum, :needs, :recipe, :title, :hook, :notBefore, :queueUntil)`),
)
// Of the job that was inserted before: RETURNING would double the time of its insert.
const SEQ = '(SELECT max(seq) FROM job)'
const INSERT_WORKFLOW = command(
  'jobs.insertWorkflow',
  sqliteOnly(`INSERT INTO job_workflow (seq, text, origin) VALUES (${SEQ}, :workflow, :origin)`),
)
const INSERT_INPUT = command(
  'jobs.insertInput',
  sqliteOnly(`INSERT INTO job_input (seq, position, name, hash, size_bytes, content_type)
    VALUES (${SEQ}, :position, :name, :hash, :sizeBytes, :contentType)`),
)
const INSERT_SECRET = command(
  'jobs.insertSecret',
  sqliteOnly(`INSERT INTO job_secret (seq, sealed) VALUES (${SEQ}, :sealed)`),
)
const INSERT_NOTES = command(
  'jobs.insertNotes',
  sqliteOnly(`INSERT INTO job_notes (seq, text) VALUES (${SEQ}, :notes)`),
)
const INSERT_LABELS = command(
  'jobs.insertLabels',
  sqliteOnly(`INSERT INTO job_label (account_id, key, value, created_at, job_id)
    SELECT :accountId, key, value, :createdAt, :id FROM json_each(:metadata)`),
)
const INSERT_SUBMISSION = command(
  'jobs.insertSubmission',
  sqliteOnly(`INSERT INTO job_submission (seq, workflow_id, text) VALUES (${SEQ}, :workflowId, :submission)`),
)
// Other moves of a job are told by triggers; a submit is too frequent for one, because a trigger costs every insert, also of jobs that
// nobody is told of.
const TELL_QUEUED = command(
  'jobs.tellQueued',
  sqliteOnly(`
    INSERT INTO webhook_delivery (id, endpoint_id, account_id, type, subject, at, facts, next_at)
    SELECT 'msg_' || lower(hex(randomblob(16))), endpoint.id, job.account_id, 'job.queued', job.id, job.created_at,
      (SELECT facts FROM webhook_job_facts WHERE seq = job.seq), job.created_at
    FROM job CROSS JOIN webhook_endpoint AS endpoint
    WHERE job.seq = ${SEQ}
      AND endpoint.id IN (
        SELECT job.hook UNION ALL SELECT id FROM webhook_endpoint WHERE account_id = job.account_id AND kind = 'account')
      AND endpoint.state = 'enabled' AND instr(endpoint.events, ' job.queued ') > 0`),
)

/** The hook of a job that only the endpoints of its account are told of. */
const FOLLOWED = ''

/** All of one account. */
export function* insertJobs(jobs: readonly NewJobRow[]): Steps<void> {
  const [first] = jobs
  if (first === undefined) return
  const counted = yield* get(COUNT, { accountId: first.accountId, count: jobs.length })
  const mark = counted?.isFollowed === true ? FOLLOWED : null
  for (const job of jobs) yield* together(...insertJob(job, mark))
}

function* insertJob(job: NewJobRow, mark: string | null): Iterable<Asked<number>> {
  const columns = toColumns(job)
  const { metadata, submission } = columns
  const hook = columns.hook ?? mark
  yield run(INSERT, { ...columns, hook })
  yield run(INSERT_WORKFLOW, columns)
  for (const [position, input] of job.inputs.entries()) yield run(INSERT_INPUT, { position, ...input })
  if (job.sealedExtraData !== null) yield run(INSERT_SECRET, { sealed: job.sealedExtraData })
  if (job.notes != null) yield run(INSERT_NOTES, { notes: job.notes })
  if (metadata !== null) yield run(INSERT_LABELS, columns)
  if (submission !== null) yield run(INSERT_SUBMISSION, columns)
  if (hook !== null) yield run(TELL_QUEUED)
}
