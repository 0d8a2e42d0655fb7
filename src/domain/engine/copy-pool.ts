/**
 * The pool of a copy: the engines of one release inside a deployment, for one of its revisions. Its name says all that must be known
 * of its jobs, so a job never changes its release, and a claim for one pool takes no job of another. It is no DNS label: no address
 * names a copy.
 */
export interface CopyPool {
  readonly deploymentId: string
  readonly revision: number
  /** The number of the release within its build. */
  readonly releaseVersion: number
}

const COPY = /^(dep-[a-z0-9]{12})\.([1-9]\d{0,8})\.v([1-9]\d{0,8})$/

export function toCopyPool({ deploymentId, revision, releaseVersion }: CopyPool): string {
  return `${deploymentId}.${revision}.v${releaseVersion}`
}

/** null: the pool is not that of a copy. */
export function readCopyPool(pool: string): CopyPool | null {
  const match = COPY.exec(pool)
  if (match === null) return null
  const [, deploymentId = '', revision, releaseVersion] = match
  return { deploymentId, revision: Number(revision), releaseVersion: Number(releaseVersion) }
}

/** The deployment whose jobs wait in a pool: of all others, the pool has the name of its deployment. */
export function deploymentOf(pool: string): string {
  return readCopyPool(pool)?.deploymentId ?? pool
}

/** Whether an engine may run jobs of a pool: one of a copy those of its copy alone, and no other engine any of them. `own`: its copy's pool. */
export function mayRun(own: string | null, pool: string): boolean {
  return own === null ? readCopyPool(pool) === null : own === pool
}
