/** Runs of endpoints as predictions, endpoints as models, and refusals, in the words of Replicate. */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import type { Endpoint, EndpointOutput, EndpointVersion } from '../../domain/endpoints/endpoint.ts'
import { toInputSchema } from '../../domain/endpoints/input-schema.ts'
import type { ServiceError } from '../../domain/errors.ts'
import type { Job, Output } from '../../domain/jobs/job.ts'
import { isTerminal, type JobStatus } from '../../domain/jobs/transitions.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

export const REPLICATE_PATH = '/replicate/v1'

const STATUS: Readonly<Record<JobStatus, string>> = {
  queued: 'starting',
  running: 'processing',
  canceling: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
  expired: 'failed',
}

export interface Told {
  readonly job: Pick<Job, 'id' | 'status' | 'createdAt' | 'startedAt' | 'completedAt' | 'outputs' | 'error'>
  /** `account/name`. */
  readonly model: string
  readonly version: string
  /** null: no longer known. */
  readonly input: JsonValue
  readonly outputs: readonly EndpointOutput[]
  /** In the answer to a create: clients take any other word than `starting` for the end. */
  readonly isNew: boolean
  /** With the outputs that there are before the end. */
  readonly isPartial?: boolean
  readonly baseUrl: string
  readonly linkTo: (output: Output) => string
}

export function toPrediction({
  job,
  model,
  version,
  input,
  outputs,
  isNew,
  isPartial,
  baseUrl,
  linkTo,
}: Told): JsonObject {
  const { id, status, createdAt, startedAt, completedAt } = job
  const self = `${baseUrl}${REPLICATE_PATH}/predictions/${id}`
  return {
    ...{ id, model, version, input, logs: '', data_removed: false, source: 'api' },
    status: isNew && !isTerminal(status) ? 'starting' : STATUS[status],
    output: status === 'succeeded' || isPartial === true ? toOutput(job, outputs, linkTo) : null,
    error: toError(job),
    metrics: completedAt === null ? {} : toMetrics(createdAt, startedAt, completedAt),
    created_at: createdAt.toISOString(),
    started_at: startedAt?.toISOString() ?? null,
    completed_at: completedAt?.toISOString() ?? null,
    urls: { get: self, cancel: `${self}/cancel`, web: `${baseUrl}/console/jobs/${id}` },
  }
}

function toError({ status, error }: Told['job']): string | null {
  if (status === 'failed') return error?.message ?? 'the run failed'
  return status === 'expired' ? 'expired' : null
}

function toMetrics(createdAt: Date, startedAt: Date | null, completedAt: Date): JsonObject {
  const seconds = (from: Date) => Math.max(0, completedAt.getTime() - from.getTime()) / 1000
  return { ...(startedAt !== null && { predict_time: seconds(startedAt) }), total_time: seconds(createdAt) }
}

/** One file is its address, several are a list; several outputs are an object by name. */
function toOutput(
  { outputs: made }: Told['job'],
  outputs: readonly EndpointOutput[],
  linkTo: Told['linkTo'],
): JsonValue {
  const files = (of: readonly Output[]): JsonValue => {
    const links = of.map(linkTo)
    return links.length > 1 ? links : (links[0] ?? null)
  }
  if (outputs.length === 0) return files(made)
  const named = outputs.map(
    ({ name, nodeId }) => [name, files(made.filter((output) => output.nodeId === nodeId))] as const,
  )
  return named.length === 1 ? named[0][1] : Object.fromEntries(named)
}

/** Plain hex, as a client can write it behind a colon. */
export function toVersionId({ hash }: Pick<EndpointVersion, 'hash'>): string {
  return hash.replace(/^sha256:/, '')
}

export function toVersionView(version: EndpointVersion): JsonObject {
  return {
    id: toVersionId(version),
    created_at: version.createdAt.toISOString(),
    cog_version: '',
    openapi_schema: {
      ...{ openapi: '3.1.0', info: { title: 'Model', version: String(version.number) }, paths: {} },
      components: { schemas: { Input: toInputSchema(version.inputs), Output: {} } },
    },
  }
}

export function toModelView({ accountId, name, description }: Endpoint, version: EndpointVersion, baseUrl: string) {
  return {
    ...{ url: `${baseUrl}${REPLICATE_PATH}/models/${accountId}/${name}`, owner: accountId, name },
    ...{ description, visibility: 'private', github_url: null, paper_url: null, license_url: null },
    ...{ cover_image_url: null, run_count: 0, default_example: null, latest_version: toVersionView(version) },
  }
}

export function createAnswerReplicateError(log: Log): AnswerError {
  const defect = toJsonAnswer(500, { title: 'Internal error', detail: DEFECT_MESSAGE, status: 500 })
  return createErrorBoundary(log, { answerRefusal, defect })
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError): ErrorAnswer {
  const status = REFUSAL_STATUS[refusal]
  const inputs = (details?.['inputs'] ?? []) as readonly { name: string; reason: string; message: string }[]
  const body = {
    title: inputs.length > 0 ? 'Input validation failed' : refusal.replaceAll('_', ' '),
    detail: inputs.length > 0 ? inputs.map((each) => `- input.${each.message}`).join('\n') : message,
    status,
    ...(inputs.length > 0 && {
      invalid_fields: inputs.map((each) => ({
        ...{ type: each.reason, field: `input.${each.name}`, description: each.message },
      })),
    }),
  }
  return toJsonAnswer(status, body, retryAfterSeconds)
}
