/** Deployments on releases in the words of the wire. Pure. */
import type {
  DeploymentEvent,
  DeploymentRevision,
  PendingUpdate,
  Progress,
  ReleasedDeployment,
} from '../../domain/deployments/released/released-deployment.ts'

/** How many engines serve, and what waits for them. */
export interface Serving {
  readonly ready: number
  readonly busy: number
  readonly starting: number
  readonly queued: number
  readonly at: Date
}

interface ViewContext {
  readonly endpointUrl: string
  readonly serving: Serving | null
}

export function toDeploymentView(deployment: ReleasedDeployment, { endpointUrl, serving }: ViewContext) {
  const { gpuClass, region, min, max, pending, progress } = deployment
  return {
    id: deployment.id,
    status: deployment.status,
    name: deployment.name,
    buildId: deployment.buildId,
    releaseId: deployment.releaseId,
    releaseVersion: deployment.releaseVersion,
    computeConfig: { gpuClass, region, min, max },
    revision: deployment.revision,
    endpointUrl,
    error: deployment.error,
    stopReason: deployment.stopReason,
    createdBy: deployment.createdBy,
    createdAt: deployment.createdAt.toISOString(),
    updatedAt: deployment.updatedAt.toISOString(),
    deletedAt: deployment.deletedAt?.toISOString() ?? null,
    deletedBy: deployment.deletedBy,
    serving: serving === null ? null : toServing(serving),
    progress: progress === null ? null : toProgress(progress),
    pendingUpdate: pending === null ? null : toPending(pending),
  }
}

function toServing({ ready, busy, starting, queued, at }: Serving) {
  return { capacity: { ready, busy, starting }, jobsInQueue: queued, sampledAt: at.toISOString() }
}

function toProgress({ step, startedAtMs, updatedAtMs, attempt, staging }: Progress) {
  const told = { step, startedAt: toTime(startedAtMs), updatedAt: toTime(updatedAtMs), attempt }
  if (staging === undefined) return told
  const { modelsDone, modelsTotal, bytesDone, bytesTotal, currentModel } = staging
  return {
    ...{ ...told, modelsDone, modelsTotal, bytesDone },
    // What is left out was never measured.
    ...(bytesTotal !== null && { bytesTotal }),
    ...(currentModel !== null && { currentModel }),
  }
}

function toPending({ releaseId, baseRevision, status, sinceMs, kind, error }: PendingUpdate) {
  return { releaseId, baseRevision, status, since: toTime(sinceMs), kind, error }
}

export function toRevisionView(made: DeploymentRevision) {
  const { revision, releaseId, releaseVersion, kind, createdBy, createdAt, fromRevision } = made
  const entry = { revision, releaseId, releaseVersion, kind, createdBy, createdAt: createdAt.toISOString() }
  return fromRevision === null ? entry : { ...entry, fromRevision }
}

export function toEventView({ at, status, message, releaseId }: DeploymentEvent) {
  return {
    at: at.toISOString(),
    status,
    ...(message !== null && { message }),
    ...(releaseId !== null && { releaseId }),
  }
}

function toTime(ms: number): string {
  return new Date(ms).toISOString()
}
