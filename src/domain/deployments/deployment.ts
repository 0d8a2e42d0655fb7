/**
 * A deployment is a named address with a pool of workers of its own. Its id is one DNS label, because it is part of a host name,
 * and it is the name of its pool. It belongs to one account, or to nobody, and then every account may use it.
 */
export type DeploymentState =
  | 'provisioning' // its workers are not there yet; it can still become ready
  | 'ready' // takes jobs; it may have gone to sleep and wakes when one comes
  | 'draining' // takes no new jobs, finishes what it has
  | 'stopped' // only an operator can start it again

export interface Deployment {
  readonly id: string
  /** null: every account. */
  readonly accountId: string | null
  readonly state: DeploymentState
  /** Jobs that run at once; 0: this process runs none, something else is called to. */
  readonly workers: number
  /** Its workers go after so long without a job; null: the service's own setting. */
  readonly idleAfterMs: number | null
  readonly createdAt: Date
  readonly changedAt: Date
}

/** The pool of addresses that name no deployment. */
export const DEFAULT_POOL = 'default'

const DEPLOYMENT_MOVES: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  provisioning: ['ready', 'draining', 'stopped'],
  ready: ['draining', 'stopped'],
  draining: ['stopped', 'provisioning'],
  stopped: ['provisioning'],
}

// RFC 1123: letters, digits and dashes inside, 63 at most.
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// Two dashes in this position announce an encoded label, which a browser would show as something else.
const ENCODED = /^..--/
/** Names that mean something else in a host name, in a path or in the queue. */
const RESERVED: ReadonlySet<string> = new Set([DEFAULT_POOL, 'run', 'stg', 'staging', 'www', 'api', 'admin', 'content'])

export function isDeploymentId(text: string): boolean {
  return LABEL.test(text) && !ENCODED.test(text) && !RESERVED.has(text)
}

export function canMove(from: DeploymentState, to: DeploymentState): boolean {
  return DEPLOYMENT_MOVES[from].includes(to)
}

/** The states from which this one can be reached. */
export function statesBefore(to: DeploymentState): DeploymentState[] {
  return (Object.keys(DEPLOYMENT_MOVES) as DeploymentState[]).filter((from) => canMove(from, to))
}
