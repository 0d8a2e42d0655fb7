/** The rows of new jobs: one statement for what every job has, and one for each further kind of row that some of them have. */
import { type NewJobRow, toColumns } from '../../../rows/jobs/new-job.ts'
import { type Asked, run, type Steps, together } from '../../../statements/operation.ts'
import { type Command, command, postgresOnly, toRows } from '../../../statements/statement.ts'

// The order of the rows is the order of the queue. The accounts are locked.
const INSERT = command(
  'jobs.insert',
  postgresOnly(`
    WITH new AS MATERIALIZED (
      SELECT * FROM unnest(:jobs.id::uuid[], :jobs.accountId::text[], :jobs.pool::text[], :jobs.priority::int[],
          :jobs.createdAt::bigint[], :jobs.expiresAt::bigint[], :jobs.flags::smallint[], :jobs.inputCount::int[], :jobs.needs::text[],
          :jobs.priceSecond::bigint[], :jobs.priceMinimum::bigint[], :jobs.metadata::text[], :jobs.workflow::text[],
          :jobs.workflowId::text[], :jobs.submission::text[], :jobs.recipe::text[], :jobs.title::text[], :jobs.origin::text[],
          :jobs.hook::text[], :jobs.notBefore::bigint[], :jobs.queueUntil::bigint[]) WITH ORDINALITY
        AS n(id, account_id, pool, priority, created_at, expires_at, needs_extra_data, input_count, needs, price_second,
          price_minimum, metadata, workflow, workflow_id, submission, recipe, title, origin, hook, not_before, queue_until, place)),
    counted AS (
      UPDATE account SET submitted = submitted + added.count
      FROM (SELECT account_id, count(*) AS count FROM new GROUP BY account_id) AS added WHERE account.id = added.account_id),
    texts AS (
      INSERT INTO job_text (job_id, expires_at, workflow, workflow_id, submission, origin)
      SELECT id, expires_at, workflow, workflow_id, submission, origin FROM new)
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count, needs,
      price_second, price_minimum, metadata, recipe, title, not_before, queue_until, hook)
    SELECT id, account_id, pool, 'queued', priority, created_at, expires_at, needs_extra_data, input_count, needs,
      price_second, price_minimum, metadata, recipe, title, not_before, queue_until, coalesce(hook, (
        SELECT '' FROM webhook_endpoint AS endpoint
        WHERE endpoint.account_id = new.account_id AND endpoint.kind = 'account' LIMIT 1))
    FROM new ORDER BY place`),
)
const INSERT_INPUTS = command(
  'jobs.insertInputs',
  postgresOnly(`INSERT INTO job_input (job_id, position, name, hash, size_bytes, content_type)
    SELECT * FROM unnest(:rows.id::uuid[], :rows.position::int[], :rows.name::text[], :rows.hash::text[], :rows.sizeBytes::bigint[],
      :rows.contentType::text[])`),
)
const INSERT_SECRETS = command(
  'jobs.insertSecrets',
  postgresOnly(`INSERT INTO job_secret (job_id, sealed)
    SELECT id, decode(sealed, 'hex') FROM unnest(:rows.id::uuid[], :rows.sealed::text[]) AS new(id, sealed)`),
)
const INSERT_NOTES = command(
  'jobs.insertNotes',
  postgresOnly('INSERT INTO job_notes (job_id, text) SELECT * FROM unnest(:rows.id::uuid[], :rows.notes::text[])'),
)
const INSERT_LABELS = command(
  'jobs.insertLabels',
  postgresOnly(`INSERT INTO job_label (account_id, key, value, created_at, job_id, expires_at)
    SELECT * FROM unnest(:rows.accountId::text[], :rows.key::text[], :rows.value::text[], :rows.createdAt::bigint[], :rows.id::uuid[],
      :rows.expiresAt::bigint[])`),
)

export function* insertJobs(jobs: readonly NewJobRow[]): Steps<void> {
  const insert = (command: Command, rows: Parameters<typeof toRows>[1]): Asked<number>[] =>
    rows.length === 0 ? [] : [run(command, toRows('rows', rows))]
  if (jobs.length === 0) return
  const inputs = jobs.flatMap(({ id, inputs }) => inputs.map((input, position) => ({ id, position, ...input })))
  const secrets = jobs.flatMap(({ id, sealedExtraData }) =>
    sealedExtraData === null ? [] : [{ id, sealed: Buffer.from(sealedExtraData).toString('hex') }],
  )
  const notes = jobs.flatMap(({ id, notes }) => (notes == null ? [] : [{ id, notes }]))
  const labels = jobs.flatMap(({ id, accountId, createdAt, expiresAt, metadata }) =>
    Object.entries(metadata).map(([key, value]) => ({ id, accountId, createdAt, expiresAt, key, value })),
  )
  yield* together(
    run(INSERT, toRows('jobs', jobs.map(toColumns))),
    ...insert(INSERT_INPUTS, inputs),
    ...insert(INSERT_SECRETS, secrets),
    ...insert(INSERT_NOTES, notes),
    ...insert(INSERT_LABELS, labels),
  )
}
