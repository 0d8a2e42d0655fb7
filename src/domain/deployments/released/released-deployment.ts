/**
 * A deployment on a release: a fixed address whose jobs run on engines of exactly one release. An update starts engines of the next
 * release beside those that serve (a copy); once they are ready, one change raises the revision, and new jobs go to the new copy.
 */
import { type CopyPool, toCopyPool } from '../../engine/copy-pool.ts'
import type { Staging } from '../../environments/builder.ts'

export const DEPLOYMENT_STATUSES = [
  'queued', // waits for room on a machine
  'provisioning', // its release is being brought there
  'starting', // its first engine is being started
  'ready',
  'unhealthy', // was ready; none of its engines answers
  'stopping',
  'stopped',
  'stop_failed',
  'failed',
] as const
export type DeploymentStatus = (typeof DEPLOYMENT_STATUSES)[number]
type ComingUp = Extract<DeploymentStatus, 'queued' | 'provisioning' | 'starting'>
export type StopReason = 'user' | 'credits' | 'policy'

export interface ComputeConfig {
  readonly gpuClass: string
  readonly region: string
  /** Engines that are always up; 0: it sleeps while it has nothing to do. */
  readonly min: number
  readonly max: number
}

export interface PendingUpdate {
  readonly releaseId: string
  readonly releaseVersion: number
  readonly baseRevision: number
  readonly kind: 'update' | 'rollback'
  /** Of a rollback: the revision whose release comes back. */
  readonly fromRevision: number | null
  /** Of the new copy. */
  readonly status: ComingUp | 'failed'
  readonly sinceMs: number
  readonly error: string | null
  readonly createdBy: string
}

export interface Progress {
  readonly step: 'creating_endpoint' | 'staging_models' | 'waiting_for_worker'
  readonly startedAtMs: number
  readonly updatedAtMs: number
  readonly attempt: number
  /** Only while models come, and only where it is known. */
  readonly staging?: Staging | undefined
}

export interface ReleasedDeployment extends ComputeConfig {
  /** `dep-` and twelve small letters and digits: a DNS label, because it is part of a host name. */
  readonly id: string
  readonly accountId: string
  readonly buildId: string
  /** Unique among the living deployments of its build. */
  readonly name: string
  readonly status: DeploymentStatus
  readonly stopReason: StopReason | null
  readonly error: string | null
  /** From 1; each landed change of release makes the next. */
  readonly revision: number
  readonly releaseId: string
  readonly releaseVersion: number
  readonly pending: PendingUpdate | null
  /** Only while it comes up. */
  readonly progress: Progress | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly deletedAt: Date | null
  readonly deletedBy: string | null
  /** Rises with every change of this deployment: who read an older one changes nothing. */
  readonly version: number
}

export interface DeploymentRevision {
  readonly deploymentId: string
  readonly revision: number
  readonly releaseId: string
  readonly releaseVersion: number
  readonly kind: 'create' | 'update' | 'rollback'
  readonly fromRevision: number | null
  readonly createdBy: string
  readonly createdAt: Date
}

export interface DeploymentEvent {
  readonly at: Date
  readonly status: DeploymentStatus
  readonly message: string | null
  readonly releaseId: string | null
}

const HOLDS_COMPUTE: Readonly<Record<DeploymentStatus, boolean>> = {
  queued: true,
  provisioning: true,
  starting: true,
  ready: true,
  unhealthy: true,
  stopping: false,
  stopped: false,
  stop_failed: false,
  failed: false,
}

const NEXT: Readonly<Record<DeploymentStatus, readonly DeploymentStatus[]>> = {
  queued: ['provisioning', 'starting', 'failed', 'stopping'],
  provisioning: ['queued', 'starting', 'failed', 'stopping'],
  starting: ['queued', 'ready', 'failed', 'stopping'],
  // A move of one that serves nothing yet begins anew.
  ready: ['unhealthy', 'stopping'],
  unhealthy: ['ready', 'failed', 'stopping'],
  stopping: ['stopped', 'stop_failed'],
  stopped: ['queued'],
  stop_failed: ['stopping', 'stopped'],
  failed: ['queued', 'stopping'],
}

export function holdsCompute({ status }: Pick<ReleasedDeployment, 'status'>): boolean {
  return HOLDS_COMPUTE[status]
}

export function isServing({ status }: Pick<ReleasedDeployment, 'status'>): boolean {
  return status === 'ready' || status === 'unhealthy'
}

export function isComingUp(status: string): status is ComingUp {
  return status === 'queued' || status === 'provisioning' || status === 'starting'
}

export function canBecome(from: DeploymentStatus, to: DeploymentStatus): boolean {
  return from === to || NEXT[from].includes(to)
}

/** The pool of the copy that serves, or will once the deployment is ready. */
export function servingPool({ id, revision, releaseVersion }: ReleasedDeployment): string {
  return toCopyPool({ deploymentId: id, revision, releaseVersion })
}

/** The pool of the copy that is to serve next; null: none is on its way. */
export function pendingPool({ id, pending }: ReleasedDeployment): string | null {
  if (pending === null || pending.status === 'failed') return null
  const copy: CopyPool = {
    deploymentId: id,
    revision: pending.baseRevision + 1,
    releaseVersion: pending.releaseVersion,
  }
  return toCopyPool(copy)
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/

export function isDeploymentName(text: string): boolean {
  return NAME.test(text) && !text.startsWith('dep-')
}

/** The name of a deployment that was given none: `production`, then `deployment-2`, `deployment-3` and so on. */
export function toDefaultName(taken: ReadonlySet<string>): string {
  if (!taken.has('production')) return 'production'
  for (let number = 2; ; number++) if (!taken.has(`deployment-${number}`)) return `deployment-${number}`
}
