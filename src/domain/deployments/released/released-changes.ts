/**
 * What happens to a deployment on a release, as pure changes: the deployment as it shall be, what is told of it, and which pools take
 * jobs from then on. The store makes each in one transaction. Everything that sets a status is here.
 */
import {
  canBecome,
  type DeploymentEvent,
  type DeploymentRevision,
  type DeploymentStatus,
  holdsCompute,
  isServing,
  type PendingUpdate,
  type Progress,
  pendingPool,
  type ReleasedDeployment,
  type StopReason,
  servingPool,
} from './released-deployment.ts'
import type { DeploymentChange, PoolChange } from './released-store.ts'

/** The release that a deployment is to move to. */
export interface Move extends Pick<PendingUpdate, 'releaseId' | 'releaseVersion' | 'kind' | 'fromRevision'> {
  readonly by: string
}

function pool(of: ReleasedDeployment, id: string, state: PoolChange['state']): PoolChange {
  return { id, accountId: of.accountId, state, workers: of.max }
}

function become(
  before: ReleasedDeployment,
  status: DeploymentStatus,
  fields: Partial<ReleasedDeployment>,
): ReleasedDeployment {
  if (!canBecome(before.status, status)) throw new Error(`a deployment cannot become ${status} from ${before.status}`)
  return { ...before, ...fields, status }
}

function tell(at: Date, { status, releaseId }: ReleasedDeployment, message: string | null): DeploymentEvent {
  return { at, status, message, releaseId }
}

const NOTHING_MORE = { revision: null, pools: [] } as const

/** Brings up what is stopped or has failed, on the release that it has. */
export function start(before: ReleasedDeployment, at: Date): DeploymentChange {
  const cleared = { error: null, stopReason: null, progress: null, pending: null, updatedAt: at }
  const after = become(before, 'queued', cleared)
  return {
    after,
    events: [tell(at, after, 'started')],
    revision: null,
    pools: [pool(after, servingPool(after), 'provisioning')],
  }
}

/** Takes no more jobs at once; those that wait stay until it is started again. */
export function stop(before: ReleasedDeployment, at: Date, reason: StopReason): DeploymentChange {
  const after = become(before, 'stopping', { stopReason: reason, pending: null, progress: null, updatedAt: at })
  return { after, events: [tell(at, after, null)], revision: null, pools: closed(before) }
}

function closed(before: ReleasedDeployment): PoolChange[] {
  const pending = pendingPool(before)
  return [servingPool(before), ...(pending === null ? [] : [pending])].map((id) => pool(before, id, 'stopped'))
}

export function remove(before: ReleasedDeployment, at: Date, by: string): DeploymentChange {
  const holds = holdsCompute(before)
  const removed = { deletedAt: at, deletedBy: by, pending: null, progress: null, updatedAt: at }
  const status = holds ? 'stopping' : before.status === 'failed' ? 'failed' : before.status
  const after = become(before, status, { ...removed, ...(holds && { stopReason: 'user' }) })
  return { after, events: [tell(at, after, 'deleted')], revision: null, pools: holds ? closed(before) : [] }
}

/** Every engine of it is gone. */
export function stopped(before: ReleasedDeployment, at: Date): DeploymentChange {
  const after = become(before, 'stopped', { updatedAt: at })
  return { after, events: [tell(at, after, null)], ...NOTHING_MORE }
}

function toRevision(after: ReleasedDeployment, move: Move, at: Date): DeploymentRevision {
  const { id: deploymentId, revision, releaseId, releaseVersion } = after
  const { kind, fromRevision, by: createdBy } = move
  return { deploymentId, revision, releaseId, releaseVersion, kind, fromRevision, createdBy, createdAt: at }
}

/** Where nothing serves, a move lands at once, and the deployment comes up on the other release. */
export function moveAtOnce(before: ReleasedDeployment, move: Move, at: Date): DeploymentChange {
  const { releaseId, releaseVersion } = move
  const revision = before.revision + 1
  const cleared = { error: null, stopReason: null, progress: null, pending: null, updatedAt: at }
  const status = 'queued' as const
  const after: ReleasedDeployment = { ...before, ...cleared, releaseId, releaseVersion, revision, status }
  return {
    after,
    events: [tell(at, after, `release ${releaseVersion} is started`)],
    revision: toRevision(after, move, at),
    pools: [pool(before, servingPool(before), 'stopped'), pool(after, servingPool(after), 'provisioning')],
  }
}

/** A copy on the other release is to be started beside the one that serves. */
export function beginMove(before: ReleasedDeployment, move: Move, at: Date): DeploymentChange {
  const { by: createdBy, ...goal } = move
  const pending: PendingUpdate = {
    ...{ ...goal, createdBy, baseRevision: before.revision },
    ...{ status: 'queued', sinceMs: at.getTime(), error: null },
  }
  const after = { ...before, pending, progress: null, updatedAt: at }
  const replaced = pendingPool(before)
  const next = pendingPool(after)
  const pools = [...(replaced === null || replaced === next ? [] : [pool(before, replaced, 'stopped')])]
  const message = replaced === null ? null : 'an update that was waiting is replaced'
  return {
    after,
    events: [{ at, status: 'queued', message, releaseId: pending.releaseId }],
    revision: null,
    pools: next === null ? pools : [...pools, pool(after, next, 'provisioning')],
  }
}

export function dropMove(before: ReleasedDeployment, at: Date): DeploymentChange {
  const dropped = pendingPool(before)
  const after = { ...before, pending: null, progress: null, updatedAt: at }
  return {
    after,
    events: [tell(at, after, `the update to release ${before.pending?.releaseVersion} was canceled`)],
    revision: null,
    pools: dropped === null ? [] : [pool(before, dropped, 'stopped')],
  }
}

/** The new copy is ready: from here on it gets all new jobs, under the next revision. Those that wait keep their release. */
export function land(before: ReleasedDeployment, at: Date): DeploymentChange {
  const { pending } = before
  const next = pendingPool(before)
  if (pending === null || next === null) throw new Error('no update is under way')
  const { releaseId, releaseVersion, kind, fromRevision, createdBy: by } = pending
  const serving = { releaseId, releaseVersion, revision: pending.baseRevision + 1 }
  const after: ReleasedDeployment = {
    ...{ ...before, ...serving, pending: null, progress: null, updatedAt: at },
    ...{ status: 'ready', error: null },
  }
  const move = { releaseId, releaseVersion, kind, fromRevision, by }
  return {
    after,
    events: [tell(at, after, `release ${releaseVersion} serves as revision ${after.revision}`)],
    revision: toRevision(after, move, at),
    pools: [pool(after, next, 'ready')],
  }
}

/** A step of what comes up: the deployment itself, or the copy that is to serve next. */
export function step(
  before: ReleasedDeployment,
  to: { readonly status: DeploymentStatus; readonly progress: Progress | null },
  at: Date,
): DeploymentChange {
  const { pending } = before
  const isNews = (pending?.status ?? before.status) !== to.status
  if (isServing(before) && pending !== null) {
    const status = to.status as PendingUpdate['status']
    const after = { ...before, progress: to.progress, pending: { ...pending, status }, updatedAt: at }
    const events = isNews ? [{ at, status: to.status, message: null, releaseId: pending.releaseId }] : []
    return { after, events, ...NOTHING_MORE }
  }
  const after = become(before, to.status, { progress: to.progress, updatedAt: at })
  const opens = to.status === 'ready' && before.status === 'starting'
  return {
    after,
    events: isNews ? [tell(at, after, null)] : [],
    revision: null,
    pools: opens ? [pool(after, servingPool(after), 'ready')] : [],
  }
}

/** What comes up has failed. A copy that fails leaves the one that serves as it is. */
export function fail(before: ReleasedDeployment, error: string, at: Date): DeploymentChange {
  const { pending } = before
  if (isServing(before) && pending !== null) {
    const gone = pendingPool(before)
    const after: ReleasedDeployment = {
      ...{ ...before, progress: null, updatedAt: at },
      pending: { ...pending, status: 'failed', error },
    }
    return {
      after,
      events: [{ at, status: 'failed', message: error, releaseId: pending.releaseId }],
      revision: null,
      pools: gone === null ? [] : [pool(before, gone, 'stopped')],
    }
  }
  const after = become(before, 'failed', { error, progress: null, updatedAt: at })
  return {
    after,
    events: [tell(at, after, error)],
    revision: null,
    pools: [pool(after, servingPool(after), 'stopped')],
  }
}

/** An older copy has nothing left to do. Refused by the store while a job waits or runs there. */
export function retire(before: ReleasedDeployment, poolId: string, at: Date): DeploymentChange {
  const gone: PoolChange = { ...pool(before, poolId, 'stopped'), onlyWhenEmpty: true }
  return { after: { ...before, updatedAt: at }, events: [], revision: null, pools: [gone] }
}
