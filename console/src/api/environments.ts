/** Builds of environments, their releases, and the deployments that serve them. */
import { getJson, send } from './client.ts'

export interface BuildRow {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly numCustomNodes: number
  readonly numModels: number
  readonly updatedAt: string
}

export interface Build extends Pick<BuildRow, 'id' | 'name' | 'description' | 'updatedAt'> {
  readonly definition: {
    readonly baseComfyVersion?: string
    readonly customNodes?: readonly { readonly name: string }[]
    readonly models?: readonly object[]
  }
}

export interface ReleaseRow {
  readonly id: string
  readonly version: number
  readonly status: 'queued' | 'building' | 'complete'
  readonly deployable: boolean
  readonly createdAt: string
}

export interface Artifact {
  readonly os: string
  readonly gpu: string
  readonly status: 'queued' | 'building' | 'ready' | 'failed'
  readonly failureReason: string | null
  readonly waitingReason: string | null
  readonly sizeBytes: number | null
  readonly startedAt: string | null
  readonly finishedAt: string | null
}

export interface Release extends ReleaseRow {
  readonly artifacts: readonly Artifact[]
}

export interface Deployment {
  readonly id: string
  readonly name: string
  readonly buildId: string
  readonly status: string
  readonly releaseId: string
  readonly releaseVersion: number
  readonly revision: number
  readonly computeConfig: { readonly gpuClass: string; readonly min: number; readonly max: number }
  readonly endpointUrl: string
  readonly error: string | null
  readonly deletedAt: string | null
  readonly serving: {
    readonly capacity: { readonly ready: number; readonly busy: number; readonly starting: number }
    readonly jobsInQueue: number
  } | null
  readonly progress: {
    readonly step: string
    readonly modelsDone?: number
    readonly modelsTotal?: number
    readonly bytesDone?: number
    readonly bytesTotal?: number
    readonly currentModel?: string
  } | null
  readonly pendingUpdate: {
    readonly status: string
    readonly kind: 'update' | 'rollback'
    readonly error: string | null
  } | null
}

export interface Revision {
  readonly revision: number
  readonly releaseId: string
  readonly releaseVersion: number
  readonly kind: 'create' | 'update' | 'rollback'
  readonly fromRevision?: number
  readonly createdBy: string
  readonly createdAt: string
}

const BUILDER = '/builder/v1'
const DEPLOYMENTS = '/deploy/v1/deployments'

const buildPath = (id: string) => `${BUILDER}/builds/${encodeURIComponent(id)}`
const releasePath = (id: string) => `${BUILDER}/releases/${encodeURIComponent(id)}`
const deploymentPath = (id: string) => `${DEPLOYMENTS}/${encodeURIComponent(id)}`

/** A page of them; `cursor` null: the first. */
export const listBuilds = (cursor: string | null, signal?: AbortSignal) =>
  getJson<{ readonly builds: readonly BuildRow[]; readonly nextCursor: string | null }>(
    `${BUILDER}/builds?${new URLSearchParams({ limit: '100', ...(cursor !== null && { cursor }) })}`,
    signal,
  )

export const getBuild = (id: string, signal?: AbortSignal) => getJson<Build>(buildPath(id), signal)

/** The newest first. */
export const listReleases = (buildId: string, cursor: string | null, signal?: AbortSignal) =>
  getJson<{ readonly releases: readonly ReleaseRow[]; readonly nextCursor: string | null }>(
    `${buildPath(buildId)}/releases?${new URLSearchParams({ limit: '100', ...(cursor !== null && { cursor }) })}`,
    signal,
  )

export const getRelease = (id: string, signal?: AbortSignal) => getJson<Release>(releasePath(id), signal)

/** `truncated`: it was longer than the service keeps. */
export const getLog = (id: string, { os, gpu }: Pick<Artifact, 'os' | 'gpu'>, signal?: AbortSignal) =>
  getJson<{ readonly log: string; readonly truncated: boolean }>(
    `${releasePath(id)}/logs?${new URLSearchParams({ os, gpu })}`,
    signal,
  )

/** A page of them, `after` null: the first. */
export const listDeployments = (after: string | null, signal?: AbortSignal) =>
  getJson<{ readonly deployments: readonly Deployment[]; readonly nextCursor: string | null }>(
    `${DEPLOYMENTS}?${new URLSearchParams({ limit: '100', ...(after !== null && { after }) })}`,
    signal,
  )

export const getDeployment = (id: string, signal?: AbortSignal) => getJson<Deployment>(deploymentPath(id), signal)

/** The oldest first. */
export const listRevisions = (id: string, signal?: AbortSignal) =>
  getJson<{ readonly items: readonly Revision[] }>(`${deploymentPath(id)}/revisions`, signal)

export const rollBack = ({ id, revision: baseRevision }: Deployment, toRevision: number) =>
  send<Deployment>('POST', `${deploymentPath(id)}/rollback`, { baseRevision, toRevision })

export const cancelUpdate = (id: string) => send<Deployment>('DELETE', `${deploymentPath(id)}/pending-update`)
