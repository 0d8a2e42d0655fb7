/** A job in the lists under `/api/jobs`. Members that would be null are left out, as clients expect. */
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { summarize, toOutputs } from './node-output.ts'
import { type PromptViewDeps, toExecutionError, toHistoryStatus, toPromptParts } from './prompt-view.ts'
import { toGroupWord } from './status-words.ts'

/** As JSON text, so that the number keeps its digits. */
export function toJobEntry(record: RecordedJob, deps: PromptViewDeps): string {
  return `{${toMembers(record, deps)}}`
}

/** A job that has ended is shown in full; one that waits or runs only as in a list. */
export function toJobDetail(record: RecordedJob, deps: PromptViewDeps): string {
  if (!isTerminal(record.job.status)) return toJobEntry(record, deps)
  const { workflow, extraData } = toPromptParts(record, deps)
  const told = JSON.stringify({ outputs: toOutputs(record.run), execution_status: toHistoryStatus(record) })
  return `{${toMembers(record, deps)},${told.slice(1, -1)},"workflow":{"prompt":${workflow},"extra_data":${extraData}}}`
}

function toMembers(record: RecordedJob, deps: PromptViewDeps): string {
  const { job, run, submission } = record
  const { number } = toPromptParts(record, deps)
  const { preview_output, ...counts } = summarize(run)
  const executionError = toExecutionError(record)
  const startedAtMs = run?.startedAtMs ?? job.startedAt?.getTime()
  const hasRun = isTerminal(job.status) && startedAtMs !== undefined
  const members = {
    create_time: job.createdAt.getTime(),
    ...(hasRun && { execution_start_time: startedAtMs, execution_end_time: job.completedAt?.getTime() }),
    ...(executionError !== null && { execution_error: executionError }),
    ...counts,
    ...(preview_output !== null && { preview_output }),
    ...(submission?.workflowId != null && { workflow_id: submission.workflowId }),
  }
  const head = `"id":${JSON.stringify(job.id)},"status":"${toGroupWord(job)}","priority":${number}`
  return `${head},${JSON.stringify(members).slice(1, -1)}`
}
