/** A job that is submitted, as it travels to the store and into its tables. */
import { readBudgetTag } from '../../../../domain/credits/budgets/budget.ts'
import { jobHoldId } from '../../../../domain/credits/ledger.ts'
import type { NewJob } from '../../../../domain/jobs/job-store.ts'
import { readRunLabels } from '../../../../domain/jobs/submit/job-labels.ts'
import { writeOrigin } from '../../../../domain/jobs/submit/job-origin.ts'
import type { HoldInput } from '../../stores/ledger/holds.ts'
import { HAS_CREDENTIALS, HAS_NOTES, HAS_TRACE, HELD_BELOW, KEEPS_RESULT } from './job.ts'
import { toSubmissionRow } from './recorded-job.ts'

interface NewRecipe {
  readonly key: string
  readonly title: string
  /** null: it is known to be stored for long enough. */
  readonly terms: string | null
  readonly expiresAt: number
}

export interface NewJobRow extends Omit<NewJob, 'recipe' | 'again'> {
  readonly recipe: NewRecipe | null
}

/** What its tables hold of it. */
export function toColumns(job: NewJobRow) {
  const { id, accountId, pool, createdAt, expiresAt, needs, workflow, inputs, price, recipe, hook, origin } = job
  const metadata = JSON.stringify(job.metadata)
  const submission = job.submission == null ? null : toSubmissionRow(job.submission)
  return {
    ...{
      id,
      accountId,
      pool,
      priority: placeOf(job),
      createdAt,
      expiresAt,
      needs,
      workflow,
      inputCount: inputs.length,
    },
    ...{ flags: toFlags(job), metadata: metadata === '{}' ? null : metadata, hook: hook?.id ?? null },
    ...{ priceSecond: price?.perSecondMicros ?? null, priceMinimum: price?.minimumMicros ?? null },
    ...{ workflowId: submission?.workflowId ?? null, submission: submission?.text ?? null },
    ...{ recipe: recipe?.key ?? null, title: recipe?.title ?? null },
    origin: origin == null ? null : writeOrigin(origin),
    notBefore: job.notBefore ?? null,
    queueUntil: job.queueUntil ?? null,
  }
}

/** The priority under which it is stored. */
export function placeOf({ priority, notBefore }: Pick<NewJob, 'priority' | 'notBefore'>): number {
  return notBefore == null ? priority : priority - HELD_BELOW
}

function toFlags({ needsExtraData, notes, origin, keepsResult }: NewJobRow): number {
  const extra = (needsExtraData ? HAS_CREDENTIALS : 0) | (notes == null ? 0 : HAS_NOTES)
  return extra | (origin?.trace == null ? 0 : HAS_TRACE) | (keepsResult ? KEEPS_RESULT : 0)
}

/** What is held for it until its end; null: it costs nothing. */
export function toHold({ id, accountId, pool, keyId = null, price, createdAt, metadata }: NewJobRow): HoldInput | null {
  if (price == null) return null
  const { holdMicros: micros, isAgreed = false } = price
  const called = readRunLabels(metadata)
  const tag = readBudgetTag(metadata['tag'])
  const labels = {
    pool,
    model: null,
    keyId,
    endpoint: called?.name ?? null,
    endpointVersion: called?.version ?? null,
    tag,
  }
  return { holdId: jobHoldId(id), accountId, micros, isAgreed, at: createdAt.getTime(), labels }
}

/** About how many bytes it holds. */
export function weighJob({ workflow, sealedExtraData, notes, submission }: NewJobRow): number {
  const whole = (submission?.wholeWorkflow?.length ?? 0) + (submission?.extraData.length ?? 0)
  return workflow.length + (sealedExtraData?.byteLength ?? 0) + (notes?.length ?? 0) + whole
}
