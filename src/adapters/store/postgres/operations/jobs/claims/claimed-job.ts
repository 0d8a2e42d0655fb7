/** A claimed job as the statements of a claim return it, and what lies beside it until it ends. */
import type { Claim, ClaimRequest } from '../../../../../../domain/jobs/job-store.ts'
import { readOrigin } from '../../../../../../domain/jobs/submit/job-origin.ts'
import type { JobStatus } from '../../../../../../domain/jobs/transitions.ts'
import { toJob, toOutput } from '../../../../rows/jobs/job-row.ts'
import { type Queryable, statement } from '../../../database/statement.ts'
import { unlistOutputs } from '../job-outputs.ts'
import { HAS_CREDENTIALS, HAS_TRACE, KEEPS_RESULT } from '../job-row.ts'

/** Only what the claimer does not know by itself: every column costs both sides time. */
export const CLAIMED_COLUMNS = `job.lease_id, job.id, job.account_id, job.status, priority, created_at, started_at, expires_at, attempt,
  version, outputs_replaced, metadata, progress, needs, job.engine_id, needs_extra_data, input_count, engine_losses,
  (SELECT workflow FROM job_text WHERE job_id = job.id AND expires_at = job.expires_at) AS workflow`

export type ClaimedRow = readonly [
  leaseId: string,
  id: string,
  accountId: string,
  status: JobStatus,
  priority: number,
  createdAt: number,
  startedAt: number,
  expiresAt: number,
  attempt: number,
  version: number,
  outputsReplaced: number,
  metadata: string | null,
  progress: string | null,
  needs: string,
  engineId: string,
  extraDataFlags: number,
  inputCount: number,
  engineLosses: number,
  workflow: string | null,
]

export const LANE_COLUMN = 13
export const ENGINE_COLUMN = 14

/** What an earlier attempt showed is not listed from now on. */
export async function toClaim(db: Queryable, row: ClaimedRow, { pool }: Pick<ClaimRequest, 'pool'>): Promise<Claim> {
  const [leaseId, jobId, , , , , , expiresAt, , , outputsReplaced] = row
  const [claim, earlier] = await Promise.all([
    readClaim(db, row, { pool, outputsReused: 0 }),
    outputsReplaced === 0 ? [] : unlistOutputs(db, { jobId, leaseId, expiresAt }),
  ])
  return { ...claim, earlierOutputs: earlier.map(toOutput) }
}

/** What the claimer of a job knows by itself. */
interface Known {
  readonly pool: string
  readonly outputsReused: number
}

export async function readClaim(db: Queryable, row: ClaimedRow, { pool, outputsReused }: Known): Promise<Claim> {
  const [leaseId, id, accountId, status, priority, createdAt, startedAt, expiresAt, attempt, version, ...rest] = row
  const [outputsReplaced, metadata, progress, needs, engineId, extraDataFlags, inputCount, engineLosses, workflow] =
    rest
  const hasCompanions = (extraDataFlags & ~KEEPS_RESULT) !== 0 || inputCount !== 0
  const companions = hasCompanions ? await findCompanions(db, id, expiresAt, extraDataFlags) : NO_COMPANIONS
  return {
    job: toJob([
      [
        ...([0, id, accountId, pool, status, priority, createdAt, startedAt, null, expiresAt] as const),
        ...([attempt, version, 0, outputsReused, outputsReplaced, metadata, progress, null, null] as const),
      ],
      null,
      null,
    ]),
    leaseId,
    engineId,
    needs,
    workflow: workflow ?? '',
    needsExtraData: (extraDataFlags & HAS_CREDENTIALS) !== 0,
    ...companions,
    earlierOutputs: [],
    engineLosses,
    ...((extraDataFlags & KEEPS_RESULT) !== 0 && { keepsResult: true }),
  }
}

type InputFields = [name: string, hash: string, sizeBytes: number, contentType: string]

const FIND_COMPANIONS = statement<
  [sealedExtraData: Uint8Array | null, notes: string | null, inputs: string | null, origin: string | null]
>(
  'jobs.find_companions',
  `SELECT (SELECT sealed FROM job_secret WHERE job_id = $1), (SELECT text FROM job_notes WHERE job_id = $1),
     (SELECT json_agg(json_build_array(name, hash, size_bytes, content_type) ORDER BY position)::text
      FROM job_input WHERE job_id = $1),
     (SELECT origin FROM job_text WHERE job_id = $1 AND expires_at = $2 AND $3::int & ${HAS_TRACE} <> 0)`,
)

type Companions = Pick<Claim, 'sealedExtraData' | 'notes' | 'inputs' | 'trace'>

const NO_COMPANIONS: Companions = { sealedExtraData: null, notes: null, inputs: [], trace: null }

/** What lies beside the job until it ends. */
async function findCompanions(db: Queryable, jobId: string, expiresAt: number, flags: number): Promise<Companions> {
  const found = (await db.get(FIND_COMPANIONS, [jobId, expiresAt, flags])) ?? []
  const [sealedExtraData = null, notes = null, inputs = null, origin = null] = found
  return {
    sealedExtraData,
    notes,
    inputs: inputs === null ? [] : (JSON.parse(inputs) as InputFields[]).map(toInput),
    trace: readOrigin(origin).trace,
  }
}

function toInput([name, hash, sizeBytes, contentType]: InputFields) {
  return { name, hash, sizeBytes, contentType }
}
