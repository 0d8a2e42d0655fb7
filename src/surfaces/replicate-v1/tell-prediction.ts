/** Jobs as predictions: as they are, and as they were when a message about one of them came up. */
import { type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Job, Output } from '../../domain/jobs/job.ts'
import { toToldError } from '../../domain/jobs/outputs/hidden-runs.ts'
import { type CalledEndpoint, isOfOther, readRunLabels } from '../../domain/jobs/submit/job-labels.ts'
import type { TellAs } from '../../domain/webhooks/webhook.ts'
import type { Door, DoorContext } from '../kit/jobs/endpoint-door.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { type Told, toPrediction, toVersionId } from './prediction-view.ts'

export interface TellDeps {
  readonly parts: Pick<SurfaceParts, 'endpoints' | 'jobs'>
  readonly door: Pick<Door, 'linkTo'>
}

type TellContext = Pick<DoorContext, 'accountId' | 'baseUrl'>
type ToldJob = Told['job'] & Pick<Job, 'id' | 'accountId' | 'expiresAt'>

export function linksOf(
  job: Pick<Job, 'accountId' | 'expiresAt'>,
  { baseUrl }: TellContext,
  { door }: TellDeps,
): Told['linkTo'] {
  return (output) => door.linkTo(output, job, baseUrl)
}

/** `isPartial`: with the outputs that there are before the end. */
export async function tell(
  {
    job,
    called,
    isPartial = false,
  }: { readonly job: ToldJob; readonly called: CalledEndpoint; readonly isPartial?: boolean },
  context: TellContext,
  deps: TellDeps,
): Promise<JsonObject> {
  const { name, version } = called
  const { accountId, baseUrl } = context
  const { endpoints, originOf } = deps.parts.endpoints
  const reference = `${name}@${version}`
  const [origin, known] = await Promise.all([
    originOf(accountId, job.id),
    endpoints.resolveToCall({ accountId, endpoints: null }, reference).catch(nullIfGone),
  ])
  return toPrediction({
    ...{
      job,
      model: name.includes('/') ? name : `${accountId}/${name}`,
      version: known === null ? reference : toVersionId(known.version),
    },
    input: origin?.endpointInputs == null ? null : parseLosslessJson(origin.endpointInputs),
    ...{ outputs: known?.version.outputs ?? [], isNew: false, isPartial, baseUrl, linkTo: linksOf(job, context, deps) },
  })
}

function nullIfGone(error: unknown): null {
  if (error instanceof ServiceError && error.refusal === 'not_found') return null
  throw error
}

type Facts = Readonly<Record<string, unknown>>

/**
 * The prediction that a message is about. A message may come late: what it says of the job is what was true then, and of a job that
 * is gone by now it says what the message knows itself. null: the job is no call of an endpoint.
 */
export function createTellMessage(deps: TellDeps): TellAs {
  return async (message, { accountId, base: baseUrl }) => {
    const stored = await deps.parts.jobs.reader.find(accountId, message.subject).catch(nullIfGone)
    const facts = JSON.parse(message.facts) as Facts
    const labels = stored?.metadata ?? ((facts['metadata'] ?? {}) as Record<string, string>)
    const called = readRunLabels(labels)
    if (called === null) return null
    const now = stored ?? toJob(message.subject, { accountId, at: message.at, facts })
    const isPartial = message.type === 'output.created'
    const isEnd = !isPartial && message.type !== 'job.started'
    const outputs = isEnd ? now.outputs : isPartial ? upTo(now.outputs, facts) : []
    const job = isEnd ? now : { ...now, ...({ status: 'running', completedAt: null, error: null } as const), outputs }
    return tell({ job, called, isPartial }, { accountId, baseUrl }, deps)
  }
}

function upTo(outputs: readonly Output[], facts: Facts): readonly Output[] {
  const at = outputs.findIndex(({ assetId }) => assetId === facts['id'])
  return at === -1 ? [toOutput(facts)] : outputs.slice(0, at + 1)
}

function toJob(
  id: string,
  { accountId, at, facts }: { readonly accountId: string; readonly at: Date; readonly facts: Facts },
): ToldJob {
  const time = (name: string) => (typeof facts[name] === 'number' ? new Date(facts[name]) : null)
  const error = (facts['error'] ?? null) as Job['error']
  const outputs = (facts['outputs'] ?? []) as readonly Facts[]
  return {
    ...{
      id,
      accountId,
      status: (facts['status'] ?? 'running') as Job['status'],
      error: error !== null && isOfOther((facts['metadata'] ?? {}) as Job['metadata']) ? toToldError(error) : error,
    },
    ...{ createdAt: time('created_at') ?? at, startedAt: time('started_at'), completedAt: time('completed_at') },
    ...{ outputs: outputs.map(toOutput), expiresAt: time('expires_at') ?? at },
  }
}

function toOutput(facts: Facts): Output {
  const text = (name: string) => String(facts[name] ?? '')
  return {
    ...{ assetId: text('id'), nodeId: text('node_id'), name: text('name'), type: text('type') as Output['type'] },
    ...{ contentType: text('content_type'), sizeBytes: Number(facts['size_bytes'] ?? 0), hash: text('hash') },
  }
}
