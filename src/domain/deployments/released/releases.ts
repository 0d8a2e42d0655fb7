/** What deployments need to know of releases, wherever those are kept and built. */
export interface DeployableRelease {
  readonly id: string
  readonly buildId: string
  /** Its number within its build, from 1. */
  readonly version: number
  /** Why no engine of it can be started on this class of compute, and what to do; null: it can. */
  readonly whyNot: (gpuClass: string) => string | null
  /** On disk; null: not measured. */
  readonly sizeBytes: number | null
}

export interface ReleaseSource {
  /** null: the account has no such release, or it is deleted. */
  find(accountId: string, releaseId: string): Promise<DeployableRelease | null>
}

/** Machines of one kind that engines of releases may be started on. */
export interface ComputeClass {
  readonly gpuClass: string
  readonly label: string
  readonly vramGb: number
  readonly availability: 'High' | 'Medium' | 'Low'
}

export interface ComputeRegion {
  readonly region: string
  readonly label: string
  readonly level: 'site'
  readonly parent: string | null
  readonly gpus: readonly ComputeClass[]
}

/** Where engines can be started, as the machines here are. */
export type ListCompute = () => Promise<readonly ComputeRegion[]>
