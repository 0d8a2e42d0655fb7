/**
 * The rows of new jobs, for a whole batch of submits at once: one statement for what every job has, and one for each further kind
 * of row that some of them have. Nothing is awaited in between.
 */
import type { NewJob } from '../../../../../domain/jobs/job-store.ts'
import { writeOrigin } from '../../../../../domain/jobs/submit/job-origin.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, KEEPS_RESULT } from '../../../rows/jobs/job.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { toSubmissionRow } from '../../../rows/jobs/recorded-job.ts'
import { type Command, command, postgresOnly, toRows } from '../../../statements/statement.ts'
import { type Queryable, statement } from '../../database/statement.ts'

// The order of the rows is the order of the queue. The accounts are locked.
const INSERT = command(
  'jobs.insert',
  postgresOnly(`
    WITH new AS MATERIALIZED (
      SELECT * FROM unnest(:jobs.id::uuid[], :jobs.accountId::text[], :jobs.pool::text[], :jobs.priority::int[],
          :jobs.createdAt::bigint[], :jobs.expiresAt::bigint[], :jobs.flags::smallint[], :jobs.inputCount::int[], :jobs.needs::text[],
          :jobs.priceSecond::bigint[], :jobs.priceMinimum::bigint[], :jobs.metadata::text[], :jobs.workflow::text[],
          :jobs.workflowId::text[], :jobs.submission::text[], :jobs.recipe::text[], :jobs.title::text[], :jobs.origin::text[],
          :jobs.hook::text[]) WITH ORDINALITY
        AS n(id, account_id, pool, priority, created_at, expires_at, needs_extra_data, input_count, needs, price_second,
          price_minimum, metadata, workflow, workflow_id, submission, recipe, title, origin, hook, place)),
    counted AS (
      UPDATE account SET submitted = submitted + added.count
      FROM (SELECT account_id, count(*) AS count FROM new GROUP BY account_id) AS added WHERE account.id = added.account_id),
    texts AS (
      INSERT INTO job_text (job_id, expires_at, workflow, workflow_id, submission, origin)
      SELECT id, expires_at, workflow, workflow_id, submission, origin FROM new)
    INSERT INTO job (id, account_id, pool, status, priority, created_at, expires_at, needs_extra_data, input_count, needs,
      price_second, price_minimum, metadata, recipe, title, hook)
    SELECT id, account_id, pool, 'queued', priority, created_at, expires_at, needs_extra_data, input_count, needs,
      price_second, price_minimum, metadata, recipe, title, coalesce(hook, (
        SELECT '' FROM webhook_endpoint AS endpoint
        WHERE endpoint.account_id = new.account_id AND endpoint.kind = 'account' LIMIT 1))
    FROM new ORDER BY place`),
)

function toRow(job: NewJob) {
  const { id, accountId, pool, priority, createdAt, expiresAt, needs, workflow, inputs, price, recipe, hook } = job
  const metadata = JSON.stringify(job.metadata)
  const submission = job.submission == null ? null : toSubmissionRow(job.submission)
  return {
    ...{ id, accountId, pool, priority, createdAt, expiresAt, needs, workflow, inputCount: inputs.length },
    ...{ flags: toFlags(job), metadata: metadata === '{}' ? null : metadata, hook: hook?.id ?? null },
    ...{ priceSecond: price?.perSecondMicros ?? null, priceMinimum: price?.minimumMicros ?? null },
    ...{ workflowId: submission?.workflowId ?? null, submission: submission?.text ?? null },
    ...{ recipe: recipe?.key ?? null, title: recipe?.title ?? null },
    origin: job.origin == null ? null : writeOrigin(job.origin),
  }
}

function toFlags({ needsExtraData, notes, origin, keepsResult }: NewJob): number {
  const extra = (needsExtraData ? HAS_CREDENTIALS : 0) | (notes == null ? 0 : HAS_NOTES)
  return extra | (origin?.trace == null ? 0 : HAS_TRACE) | (keepsResult ? KEEPS_RESULT : 0)
}

// Only rows that are new or near their end: a row that somebody else has just written is not even locked.
const KEEP_RECIPES = command(
  'jobs.keep_recipes',
  postgresOnly(`
    INSERT INTO job_recipe AS known (account_id, recipe, title, terms, expires_at)
    SELECT account_id, recipe, '', min(terms), max(expires_at)
    FROM unnest(:recipes.accountId::text[], :recipes.recipe::text[], :recipes.terms::text[], :recipes.expiresAt::bigint[])
      AS new(account_id, recipe, terms, expires_at)
    WHERE NOT EXISTS (
      SELECT 1 FROM job_recipe WHERE job_recipe.account_id = new.account_id AND job_recipe.recipe = new.recipe
        AND job_recipe.expires_at >= new.expires_at)
    GROUP BY account_id, recipe ORDER BY account_id, recipe
    ON CONFLICT (account_id, recipe) DO UPDATE SET expires_at = greatest(known.expires_at, excluded.expires_at)`),
)

export interface NewRecipe {
  readonly accountId: string
  readonly recipe: RecipeFields
}

export async function keepRecipes(tx: Queryable, recipes: readonly NewRecipe[]): Promise<void> {
  const rows = recipes.flatMap(({ accountId, recipe: [recipe, terms, expiresAt] }) =>
    terms === null ? [] : [{ accountId, recipe, terms, expiresAt }],
  )
  if (rows.length > 0) await tx.run(KEEP_RECIPES, toRows('recipes', rows))
}

const INSERT_INPUTS = command(
  'jobs.insert_inputs',
  postgresOnly(`INSERT INTO job_input (job_id, position, name, hash, size_bytes, content_type)
    SELECT * FROM unnest(:rows.id::uuid[], :rows.position::int[], :rows.name::text[], :rows.hash::text[], :rows.sizeBytes::bigint[],
      :rows.contentType::text[])`),
)
const INSERT_SECRETS = statement(
  'jobs.insert_secrets',
  'INSERT INTO job_secret (job_id, sealed) SELECT * FROM unnest($1::uuid[], $2::bytea[])',
)
const INSERT_NOTES = command(
  'jobs.insert_notes',
  postgresOnly('INSERT INTO job_notes (job_id, text) SELECT * FROM unnest(:rows.id::uuid[], :rows.notes::text[])'),
)
const INSERT_LABELS = command(
  'jobs.insert_labels',
  postgresOnly(`INSERT INTO job_label (account_id, key, value, created_at, job_id, expires_at)
    SELECT * FROM unnest(:rows.accountId::text[], :rows.key::text[], :rows.value::text[], :rows.createdAt::bigint[], :rows.id::uuid[],
      :rows.expiresAt::bigint[])`),
)

/** Also counts them for their accounts. */
export async function insertJobs(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  if (jobs.length === 0) return
  const insert = (command: Command, rows: Parameters<typeof toRows>[1]) =>
    rows.length === 0 ? undefined : tx.run(command, toRows('rows', rows))
  await Promise.all([
    tx.run(INSERT, toRows('jobs', jobs.map(toRow))),
    insert(
      INSERT_INPUTS,
      jobs.flatMap(({ id, inputs }) => inputs.map((input, position) => ({ id, position, ...input }))),
    ),
    insertSecrets(tx, jobs),
    insert(
      INSERT_NOTES,
      jobs.flatMap(({ id, notes }) => (notes == null ? [] : [{ id, notes }])),
    ),
    insert(
      INSERT_LABELS,
      jobs.flatMap(({ id, accountId, createdAt, expiresAt, metadata }) =>
        Object.entries(metadata).map(([key, value]) => ({ id, accountId, createdAt, expiresAt, key, value })),
      ),
    ),
  ])
}

async function insertSecrets(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ id, sealedExtraData }) => (sealedExtraData === null ? [] : { id, sealedExtraData }))
  if (rows.length === 0) return
  const toBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength)
  await tx.run(INSERT_SECRETS, [rows.map(({ id }) => id), rows.map(({ sealedExtraData }) => toBuffer(sealedExtraData))])
}
