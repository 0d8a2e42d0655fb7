/**
 * The rows of new jobs, for a whole batch of submits at once: one statement for what every job has, and one for each further kind
 * of row that some of them have. Nothing is awaited in between.
 */
import type { NewJob } from '../../../../../domain/jobs/job-store.ts'
import { writeOrigin } from '../../../../../domain/jobs/submit/job-origin.ts'
import type { RecipeFields } from '../../../rows/jobs/known-recipes.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, KEEPS_RESULT } from './job-row.ts'
import { toSubmissionRow } from './write-run-records.ts'

// The order of the rows is the order of the queue. The accounts are locked.
const INSERT = statement(
  'jobs.insert',
  `WITH new AS MATERIALIZED (
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::smallint[], $8::int[],
       $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
       $18::text[], $19::text[]) WITH ORDINALITY
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
   FROM new ORDER BY place`,
)

// Only rows that are new or near their end: a row that somebody else has just written is not even locked.
const KEEP_RECIPES = statement(
  'jobs.keep_recipes',
  `INSERT INTO job_recipe AS known (account_id, recipe, title, terms, expires_at)
   SELECT account_id, recipe, '', min(terms), max(expires_at)
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS new(account_id, recipe, terms, expires_at)
   WHERE NOT EXISTS (
     SELECT 1 FROM job_recipe WHERE job_recipe.account_id = new.account_id AND job_recipe.recipe = new.recipe
       AND job_recipe.expires_at >= new.expires_at)
   GROUP BY account_id, recipe ORDER BY account_id, recipe
   ON CONFLICT (account_id, recipe) DO UPDATE SET expires_at = greatest(known.expires_at, excluded.expires_at)`,
)

export interface NewRecipe {
  readonly accountId: string
  readonly recipe: RecipeFields
}

export async function keepRecipes(tx: Queryable, recipes: readonly NewRecipe[]): Promise<void> {
  const fresh = recipes.filter(({ recipe: [, terms] }) => terms !== null)
  if (fresh.length === 0) return
  const column = (index: 0 | 1 | 2) => fresh.map(({ recipe }) => recipe[index])
  await tx.run(KEEP_RECIPES, [fresh.map(({ accountId }) => accountId), column(0), column(1), column(2)])
}

const INSERT_INPUTS = statement(
  'jobs.insert_inputs',
  `INSERT INTO job_input (job_id, position, name, hash, size_bytes, content_type)
   SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::bigint[], $6::text[])`,
)
const INSERT_SECRETS = statement(
  'jobs.insert_secrets',
  'INSERT INTO job_secret (job_id, sealed) SELECT * FROM unnest($1::uuid[], $2::bytea[])',
)
const INSERT_NOTES = statement(
  'jobs.insert_notes',
  'INSERT INTO job_notes (job_id, text) SELECT * FROM unnest($1::uuid[], $2::text[])',
)
const INSERT_LABELS = statement(
  'jobs.insert_labels',
  `INSERT INTO job_label (account_id, key, value, created_at, job_id, expires_at)
   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::bigint[])`,
)

/** Also counts them for their accounts. */
export async function insertJobs(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  if (jobs.length === 0) return
  await Promise.all([
    insertRows(tx, jobs),
    insertInputs(tx, jobs),
    insertSecrets(tx, jobs),
    insertNotes(tx, jobs),
    insertLabels(tx, jobs),
  ])
}

function insertRows(tx: Queryable, jobs: readonly NewJob[]): Promise<number> {
  const submissions = jobs.map(({ submission }) => (submission == null ? null : toSubmissionRow(submission)))
  return tx.run(INSERT, [
    jobs.map(({ id }) => id),
    jobs.map(({ accountId }) => accountId),
    jobs.map(({ pool }) => pool),
    jobs.map(({ priority }) => priority),
    jobs.map(({ createdAt }) => createdAt.getTime()),
    jobs.map(({ expiresAt }) => expiresAt.getTime()),
    jobs.map(toFlags),
    jobs.map(({ inputs }) => inputs.length),
    jobs.map(({ needs }) => needs),
    jobs.map(({ price }) => price?.perSecondMicros ?? null),
    jobs.map(({ price }) => price?.minimumMicros ?? null),
    jobs.map(({ metadata }) => toMetadata(metadata)),
    jobs.map(({ workflow }) => workflow),
    submissions.map((submission) => submission?.workflowId ?? null),
    submissions.map((submission) => submission?.text ?? null),
    jobs.map(({ recipe }) => recipe?.key ?? null),
    jobs.map(({ recipe }) => recipe?.title ?? null),
    jobs.map(({ origin }) => (origin == null ? null : writeOrigin(origin))),
    jobs.map(({ hook }) => hook?.id ?? null),
  ])
}

function toFlags({ needsExtraData, notes, origin, keepsResult }: NewJob): number {
  const extra = (needsExtraData ? HAS_CREDENTIALS : 0) | (notes == null ? 0 : HAS_NOTES)
  return extra | (origin?.trace == null ? 0 : HAS_TRACE) | (keepsResult ? KEEPS_RESULT : 0)
}

function toMetadata(metadata: NewJob['metadata']): string | null {
  const text = JSON.stringify(metadata)
  return text === '{}' ? null : text
}

async function insertInputs(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ id, inputs }) => inputs.map((input, position) => ({ id, position, ...input })))
  if (rows.length === 0) return
  await tx.run(INSERT_INPUTS, [
    rows.map(({ id }) => id),
    rows.map(({ position }) => position),
    rows.map(({ name }) => name),
    rows.map(({ hash }) => hash),
    rows.map(({ sizeBytes }) => sizeBytes),
    rows.map(({ contentType }) => contentType),
  ])
}

async function insertSecrets(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ id, sealedExtraData }) => (sealedExtraData === null ? [] : { id, sealedExtraData }))
  if (rows.length === 0) return
  await tx.run(INSERT_SECRETS, [
    rows.map(({ id }) => id),
    rows.map(({ sealedExtraData: { buffer, byteOffset, byteLength } }) =>
      Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength),
    ),
  ])
}

async function insertNotes(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap(({ id, notes }) => (notes == null ? [] : { id, notes }))
  if (rows.length === 0) return
  await tx.run(INSERT_NOTES, [rows.map(({ id }) => id), rows.map(({ notes }) => notes)])
}

async function insertLabels(tx: Queryable, jobs: readonly NewJob[]): Promise<void> {
  const rows = jobs.flatMap((job) => Object.entries(job.metadata).map(([key, value]) => ({ job, key, value })))
  if (rows.length === 0) return
  await tx.run(INSERT_LABELS, [
    rows.map(({ job }) => job.accountId),
    rows.map(({ key }) => key),
    rows.map(({ value }) => value),
    rows.map(({ job }) => job.createdAt.getTime()),
    rows.map(({ job }) => job.id),
    rows.map(({ job }) => job.expiresAt.getTime()),
  ])
}
