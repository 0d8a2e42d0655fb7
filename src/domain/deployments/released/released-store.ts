import type { DeploymentState } from '../deployment.ts'
import type {
  DeploymentEvent,
  DeploymentRevision,
  DeploymentStatus,
  ReleasedDeployment,
} from './released-deployment.ts'

/** The row of a copy's pool, which decides whether jobs are taken. */
export interface PoolChange {
  readonly id: string
  readonly accountId: string
  readonly state: DeploymentState
  readonly workers: number
  /** Only while no job of its pool waits or runs; otherwise nothing of the change is made. */
  readonly onlyWhenEmpty?: boolean
}

/** All of it is made in one transaction, or nothing. */
export interface DeploymentChange {
  /** As it shall be; its version is that of the deployment that was read, and the store raises it. */
  readonly after: ReleasedDeployment
  readonly events: readonly DeploymentEvent[]
  readonly revision: DeploymentRevision | null
  readonly pools: readonly PoolChange[]
}

interface NewReleasedDeployment extends Omit<DeploymentChange, 'after' | 'pools'> {
  /** An empty name: the store finds the default. */
  readonly made: ReleasedDeployment
  readonly pool: PoolChange
  /** For ever remembered; null: it came without one. */
  readonly key: string | null
  /** Of the living deployments of an account. */
  readonly maxLive: number
}

type CreateOutcome =
  | { readonly outcome: 'created' | 'repeated'; readonly deployment: ReleasedDeployment }
  | { readonly outcome: 'name_taken' | 'too_many' }

type ChangeOutcome =
  | { readonly outcome: 'changed'; readonly deployment: ReleasedDeployment }
  /** `stale`: it was changed since it was read. `busy`: a pool that must be empty is not. */
  | { readonly outcome: 'stale' | 'name_taken' | 'busy' }

export interface DeploymentListQuery {
  readonly accountId: string
  readonly status: DeploymentStatus | null
  /** The last one of the page before. */
  readonly after: { readonly createdAt: Date; readonly id: string } | null
  readonly limit: number
}

/** A release that something still needs, and what. */
interface ReleaseUse {
  readonly releaseId: string
  readonly deploymentId: string
  readonly name: string
}

export interface ReleasedStore {
  create(created: NewReleasedDeployment): Promise<CreateOutcome>
  find(accountId: string, id: string): Promise<ReleasedDeployment | null>
  /** Newest first, deleted ones included. */
  list(query: DeploymentListQuery): Promise<readonly ReleasedDeployment[]>
  /** Those of all accounts whose engines somebody has to look after: every one that is not stopped or failed for good. */
  active(): Promise<readonly ReleasedDeployment[]>
  change(change: DeploymentChange): Promise<ChangeOutcome>
  /** Oldest first. */
  revisions(deploymentId: string): Promise<readonly DeploymentRevision[]>
  /** The newest of them, oldest first. */
  events(deploymentId: string): Promise<readonly DeploymentEvent[]>
  /** Which of these releases serve, wait to serve, or may be rolled back to, in deployments that are not deleted. */
  usesOf(releaseIds: readonly string[]): Promise<readonly ReleaseUse[]>
  /** All of them. */
  usedReleases(): Promise<readonly string[]>
}
