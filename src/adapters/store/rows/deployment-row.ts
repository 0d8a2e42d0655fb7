/** A deployment as both stores select it. */
import type { Deployment, DeploymentState } from '../../../domain/deployments/deployment.ts'

export const DEPLOYMENT_COLUMNS = 'id, account_id, state, workers, idle_after, created_at, changed_at'

export type DeploymentRow = [
  id: string,
  accountId: string | null,
  state: DeploymentState,
  workers: number,
  idleAfterMs: number | null,
  createdAt: number,
  changedAt: number,
]

export function toDeployment([
  id,
  accountId,
  state,
  workers,
  idleAfterMs,
  createdAt,
  changedAt,
]: DeploymentRow): Deployment {
  const [created, changed] = [new Date(createdAt), new Date(changedAt)]
  return { id, accountId, state, workers, idleAfterMs, createdAt: created, changedAt: changed }
}
