/** The full view of one job, the same for its owner and for the operator. */
import type { NamedFiles } from '../../../domain/assets/named-files.ts'
import type { Submission } from '../../../domain/jobs/job.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { type GraphLayout, type JobOrigin, readLayout } from '../../../domain/jobs/submit/job-origin.ts'
import type { JobDetails } from '../../../domain/jobs/summaries/summary-store.ts'
import { readNodes, toAttemptViews, toInputViews, toOutputView, toPriceView } from './job-view.ts'

interface DetailParts {
  readonly assets: Pick<NamedFiles, 'findManyByHash'>
  readonly mountPrefix: string
}

/** What stands beside the summary, the wait and the error. */
export async function toDetailView(
  details: JobDetails,
  { job, workflow, submission }: Pick<RecordedJob, 'job' | 'workflow' | 'submission'>,
  { assets, mountPrefix }: DetailParts,
) {
  const { origin } = details
  const hashes = origin.inputs.map(({ hash }) => hash)
  const found = await assets.findManyByHash(job.accountId, hashes)
  const nodes = readNodes(workflow)
  return {
    metadata: Object.fromEntries(Object.entries(job.metadata).filter(([key]) => key !== '')),
    client: submission?.clientId ?? null,
    batch_id: details.batchId,
    idempotency_key: origin.idempotencyKey,
    has_layout: layoutOf(submission, origin) !== null,
    inputs: toInputViews(origin, found, mountPrefix),
    are_inputs_cut: origin.areInputsCut,
    outputs_list: job.outputs.map((output) => toOutputView(output, { mountPrefix, nodes })),
    attempts: toAttemptViews(details),
    price: toPriceView(details),
  }
}

/** A submission keeps what its editor sent; of any other submit the layout alone is kept. null: no editor said where the nodes are. */
export function layoutOf(submission: Submission | null, { layout }: JobOrigin): GraphLayout | null {
  return layout ?? (submission === null ? null : readLayout(parseOrNull(submission.extraData)))
}

function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
