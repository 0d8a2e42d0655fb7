/** What the next change of a deployment on a release is, after how far its engines have come; null: none yet. */
import type { Clock } from '../../../../lib/clock.ts'
import type { CopyEngines, CopyState } from './copy-engines.ts'
import type { OlderCopy } from './copy-plan.ts'
import * as changes from './released-changes.ts'
import {
  type DeploymentStatus,
  isComingUp,
  isServing,
  type Progress,
  pendingPool,
  type ReleasedDeployment,
  servingPool,
} from './released-deployment.ts'
import type { DeploymentChange } from './released-store.ts'

interface StepDeps {
  readonly engines: Pick<CopyEngines, 'look' | 'place'>
  readonly startWithinMs?: number
  readonly clock: Clock
}

// A large model is read from a slow disk before the first answer.
const START_WITHIN_MS = 30 * 60_000
const PROGRESS_EVERY_MS = 3000
const UNHEALTHY_MS = 30_000

export function createNextStep({ engines, startWithinMs = START_WITHIN_MS, clock }: StepDeps) {
  const judgeHealth = createJudge(engines)
  const comingUp = createComingUp(engines, startWithinMs)

  return async function nextChange(
    deployment: ReleasedDeployment,
    older: readonly OlderCopy[],
  ): Promise<DeploymentChange | null> {
    const at = clock.now()
    if (deployment.status === 'stopping') {
      const pools = [servingPool(deployment), ...older.map(({ pool }) => pool)]
      return pools.every((pool) => engines.look(pool).up === 0) ? changes.stopped(deployment, at) : null
    }
    const trial = pendingPool(deployment)
    if (isServing(deployment)) {
      if (trial !== null) return comingUp(deployment, trial, at)
      return judgeHealth(deployment, at)
    }
    return isComingUp(deployment.status) ? comingUp(deployment, servingPool(deployment), at) : null
  }
}

function createComingUp(engines: StepDeps['engines'], startWithinMs: number) {
  /** The next step of what comes up, be it the deployment or its next copy. */
  return async function comingUp(
    deployment: ReleasedDeployment,
    pool: string,
    at: Date,
  ): Promise<DeploymentChange | null> {
    const { accountId, pending, releaseId, gpuClass } = deployment
    const isTrial = isServing(deployment) && pending !== null
    const status = isTrial ? pending.status : deployment.status
    const state = engines.look(pool)
    const found = await engines.place(accountId, isTrial ? pending.releaseId : releaseId, gpuClass)
    if (found.place === 'gone') return changes.fail(deployment, `start: ${found.reason}`, at)
    if (found.place === 'coming') return bringing(deployment, { status, staging: found.staging }, at)
    if (state.failure !== null) return changes.fail(deployment, `start: ${state.failure}`, at)
    const progress = toProgress(deployment, state, at)
    if (at.getTime() - progress.startedAtMs > startWithinMs)
      return changes.fail(
        deployment,
        `start: no engine answered within ${Math.round(startWithinMs / 60_000)} minutes`,
        at,
      )
    if (state.ready > 0 && status === 'starting')
      return isTrial ? changes.land(deployment, at) : changes.step(deployment, { status: 'ready', progress: null }, at)
    if (status === 'queued')
      return state.up > 0 ? changes.step(deployment, { status: 'provisioning', progress }, at) : null
    if (status === 'provisioning') return changes.step(deployment, { status: 'starting', progress }, at)
    const isOld = at.getTime() - (deployment.progress?.updatedAtMs ?? 0) >= PROGRESS_EVERY_MS
    return isOld && status === 'starting' ? changes.step(deployment, { status, progress }, at) : null
  }
}

/** Its folder is being made; the time for starting begins when it is there. */
function bringing(
  deployment: ReleasedDeployment,
  { status, staging }: { readonly status: DeploymentStatus } & Pick<Progress, 'staging'>,
  at: Date,
): DeploymentChange | null {
  const nowMs = at.getTime()
  const before = deployment.progress
  if (nowMs - (before?.updatedAtMs ?? 0) < PROGRESS_EVERY_MS) return null
  const step = 'staging_models'
  const startedAtMs = before?.step === step ? before.startedAtMs : nowMs
  const progress: Progress = { step, startedAtMs, updatedAtMs: nowMs, attempt: 1, staging }
  return changes.step(deployment, { status: status === 'queued' ? 'provisioning' : status, progress }, at)
}

function createJudge(engines: StepDeps['engines']) {
  /** Since when a copy that serves has had engines and none that answers. */
  const silentSince = new Map<string, number>()
  return function judgeHealth(deployment: ReleasedDeployment, at: Date): DeploymentChange | null {
    const state = engines.look(servingPool(deployment))
    const isSilent = state.up > 0 && state.ready === 0
    const nowMs = at.getTime()
    if (!isSilent) silentSince.delete(deployment.id)
    else if (!silentSince.has(deployment.id)) silentSince.set(deployment.id, nowMs)
    const silentMs = nowMs - (silentSince.get(deployment.id) ?? nowMs)
    const isFaulty = isSilent && (state.failure !== null || silentMs >= UNHEALTHY_MS)
    if (isFaulty && deployment.status === 'ready')
      return changes.step(deployment, { status: 'unhealthy', progress: null }, at)
    const isWell = deployment.status === 'unhealthy' && (state.ready > 0 || state.up === 0)
    return isWell ? changes.step(deployment, { status: 'ready', progress: null }, at) : null
  }
}

function toProgress({ progress }: ReleasedDeployment, { up }: CopyState, at: Date): Progress {
  const nowMs = at.getTime()
  const step = up > 0 ? 'waiting_for_worker' : 'creating_endpoint'
  const began = progress === null || progress.step === 'staging_models' ? nowMs : progress.startedAtMs
  return { step, startedAtMs: began, updatedAtMs: nowMs, attempt: 1 }
}
