/** A claimed job with everything that its run needs, as both stores select it. */
import type { JobInput, Output } from '../../../../domain/jobs/job.ts'
import type { Claim } from '../../../../domain/jobs/job-store.ts'
import { readOrigin } from '../../../../domain/jobs/submit/job-origin.ts'
import { jobRow } from '../../tables/jobs.ts'
import { bytes, integer, json, nullable, type RowOf, shape, text } from '../../tables/table.ts'
import { HAS_CREDENTIALS, KEEPS_RESULT, toJob } from './job.ts'

export const claimedRow = shape({
  ...jobRow.fields,
  leaseId: nullable(text()),
  runId: nullable(text()),
  needs: text(),
  engineId: text(),
  engineLosses: integer('integer'),
  extraDataFlags: integer('smallint'),
  workflow: nullable(text()),
  /** What is kept of its submit, where a trace is among that. */
  origin: nullable(text()),
  sealed: nullable(bytes()),
  notes: nullable(text()),
  inputs: nullable(json<readonly JobInput[]>()),
})

export type ClaimedRow = RowOf<typeof claimedRow>

export function toClaim(row: ClaimedRow, leaseId: string, earlierOutputs: readonly Output[]): Claim {
  const { engineId, runId, needs, engineLosses, extraDataFlags, workflow, origin, sealed, notes, inputs } = row
  return {
    job: toJob(row, [], null),
    ...(runId !== null && { runId }),
    ...{ leaseId, engineId, needs, notes, earlierOutputs, engineLosses },
    workflow: workflow ?? '',
    inputs: inputs ?? [],
    needsExtraData: (extraDataFlags & HAS_CREDENTIALS) !== 0,
    sealedExtraData: sealed,
    trace: readOrigin(origin).trace,
    ...((extraDataFlags & KEEPS_RESULT) !== 0 && { keepsResult: true }),
  }
}
