/** A claim on its way to a joined worker: what the run needs, and what only the service knows of the job's account. */
import { readTraceContext, toTraceHeaders } from '../../../../lib/tracing/trace-context.ts'
import type { Refusal } from '../../errors.ts'
import type { Job, JobInput, Output } from '../../jobs/job.ts'
import type { Claim } from '../../jobs/job-store.ts'
import {
  type OutputFields,
  type ProgressFields,
  readOutput,
  readProgress,
  writeOutput,
  writeProgress,
} from './run-wire.ts'

/** What a worker with a store would ask the service for. */
export interface ClaimTerms {
  /** The run must have the credentials of its submit. */
  readonly needsCredentials: boolean
  /** These as JSON text, opened for this worker; null: there are none for it, or they are lost. */
  readonly credentials: string | null
  /** How long the run may take; null: as long as it takes. */
  readonly maxRunMs: number | null
  /** How much the account may still keep; null: no bound. */
  readonly storageLeftBytes: number | null
  /** Why the account may run nothing now, though its job was accepted; null: it may. */
  readonly refusal: { readonly refusal: Refusal; readonly message: string } | null
  /** Whether an engine of another process of the service could take the job over. */
  readonly hasOther: boolean
  /** Outputs of the run are written with its end: the service has them checked then. */
  readonly holdsOutputs: boolean
}

interface InputFields {
  readonly name: string
  readonly hash: string
  readonly size_bytes: number
  readonly content_type: string
}

interface JobFields {
  readonly id: string
  readonly account_id: string
  readonly pool: string
  readonly priority: number
  readonly metadata: Readonly<Record<string, string>>
  readonly created_at: string
  readonly started_at: string | null
  readonly expires_at: string
  readonly progress: ProgressFields | null
  readonly outputs_replaced: number
  readonly attempt: number
  readonly version: number
  readonly status: Job['status']
}

export interface ClaimFields {
  readonly job: JobFields
  readonly engine: string
  readonly needs: string
  readonly workflow: string
  readonly inputs: readonly InputFields[]
  readonly needs_credentials: boolean
  readonly credentials: string | null
  readonly notes: string | null
  readonly earlier_outputs: readonly OutputFields[]
  readonly engine_losses: number
  /** The trace of its submit, as W3C headers say it; left out: none is known. */
  readonly traceparent?: string
  readonly tracestate?: string
  readonly max_run_ms: number | null
  readonly storage_left_bytes: number | null
  readonly refusal: ClaimTerms['refusal']
  readonly has_other: boolean
  /** Left out: false. */
  readonly holds_outputs?: boolean
}

/** `engine`: as the worker calls it. */
export function writeClaim(claim: Claim, engine: string, terms: ClaimTerms): ClaimFields {
  return {
    job: writeJob(claim.job),
    engine,
    needs: claim.needs,
    workflow: claim.workflow,
    inputs: claim.inputs.map(({ name, hash, sizeBytes, contentType }) => ({
      ...{ name, hash, size_bytes: sizeBytes, content_type: contentType },
    })),
    needs_credentials: terms.needsCredentials,
    credentials: terms.credentials,
    notes: claim.notes,
    earlier_outputs: claim.earlierOutputs.map((output) => writeOutput(output)),
    engine_losses: claim.engineLosses,
    ...(claim.trace != null && toTraceHeaders(claim.trace)),
    max_run_ms: terms.maxRunMs,
    storage_left_bytes: terms.storageLeftBytes,
    refusal: terms.refusal,
    has_other: terms.hasOther,
    ...(terms.holdsOutputs && { holds_outputs: true }),
  }
}

export function readClaim(fields: ClaimFields, leaseId: string): { readonly claim: Claim; readonly terms: ClaimTerms } {
  return {
    claim: {
      job: readJob(fields.job),
      leaseId,
      engineId: fields.engine,
      needs: fields.needs,
      workflow: fields.workflow,
      inputs: fields.inputs.map(
        ({ name, hash, size_bytes: sizeBytes, content_type: contentType }): JobInput => ({
          ...{ name, hash, sizeBytes, contentType },
        }),
      ),
      needsExtraData: fields.needs_credentials,
      sealedExtraData: null,
      notes: fields.notes,
      earlierOutputs: fields.earlier_outputs.map((output): Output => readOutput(output)),
      engineLosses: fields.engine_losses,
      holdsOutputs: fields.holds_outputs === true,
      trace: readTraceContext(fields.traceparent, fields.tracestate),
    },
    terms: {
      needsCredentials: fields.needs_credentials,
      credentials: fields.credentials,
      maxRunMs: fields.max_run_ms,
      storageLeftBytes: fields.storage_left_bytes,
      refusal: fields.refusal,
      hasOther: fields.has_other,
      holdsOutputs: fields.holds_outputs === true,
    },
  }
}

function writeJob(job: Job): JobFields {
  const { id, pool, priority, attempt, version, status } = job
  return {
    ...{ id, pool, priority, attempt, version, status },
    // No run looks at what its submitter noted for itself.
    metadata: {},
    account_id: job.accountId,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    progress: job.progress === null ? null : writeProgress(job.progress),
    outputs_replaced: job.outputsReplaced,
  }
}

function readJob(fields: JobFields): Job {
  const { id, pool, priority, metadata, attempt, version, status } = fields
  return {
    ...{ id, pool, priority, metadata, attempt, version, status },
    accountId: fields.account_id,
    createdAt: new Date(fields.created_at),
    startedAt: fields.started_at === null ? null : new Date(fields.started_at),
    completedAt: null,
    expiresAt: new Date(fields.expires_at),
    queuePosition: null,
    progress: fields.progress === null ? null : readProgress(fields.progress),
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: fields.outputs_replaced,
  }
}
