/**
 * Builds, and what is cut from them. A build is edited; a release is what it said at one moment, and never changes; an artifact is
 * that release made for one target.
 */
import { createHash } from 'node:crypto'
import { type BuildDefinition, type BuildTarget, targetText } from './definition.ts'
import type { ReleaseLock } from './lock.ts'

export interface Build {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly description: string | null
  readonly definition: BuildDefinition
  /** The API key that made it; null: none. */
  readonly createdBy: string | null
  readonly createdAt: Date
  /** Its revision: later with every change, however quickly they come. */
  readonly updatedAt: Date
  /** Of its releases, those that were removed included: a number never means two things. */
  readonly lastVersion: number
}

/** What a list of builds says of each. */
export interface BuildSummary extends Omit<Build, 'definition'> {
  readonly modelCount: number
  readonly packCount: number
  /** Of the uploaded files that it uses. */
  readonly blobBytes: number
}

export interface Release {
  readonly id: string
  readonly accountId: string
  readonly buildId: string
  /** 1, 2, 3 … within its build. */
  readonly version: number
  readonly definition: BuildDefinition
  readonly createdBy: string | null
  readonly createdAt: Date
}

export type ArtifactStatus = 'queued' | 'building' | 'ready' | 'failed'

export interface Artifact {
  readonly id: string
  readonly releaseId: string
  readonly accountId: string
  readonly target: BuildTarget
  readonly status: ArtifactStatus
  /** As `<phase>: <cause>`; null unless it has failed. */
  readonly failureReason: string | null
  readonly queuedAt: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  /** How often a builder has begun, since it was last queued by its owner. */
  readonly attempts: number
  /** Noted as soon as it is resolved, so that a build that goes on elsewhere makes the same. */
  readonly lock: ReleaseLock | null
  readonly archiveSha256: string | null
  readonly sizeBytes: number | null
  /** By pack, as the import test found them. */
  readonly classes: Readonly<Record<string, readonly string[]>> | null
}

export interface ReleaseWithArtifacts extends Release {
  /** In the order in which their targets were named; never empty. */
  readonly artifacts: readonly Artifact[]
}

/** Without what can be long. */
type ArtifactSummary = Omit<Artifact, 'lock' | 'classes'>

/** What a list of releases says of each. */
export interface ReleaseSummary extends Omit<Release, 'definition'> {
  readonly artifacts: readonly ArtifactSummary[]
}

type ReleaseStatus = 'queued' | 'building' | 'complete'

export function releaseStatus(artifacts: readonly Pick<Artifact, 'status'>[]): ReleaseStatus {
  if (artifacts.every(({ status }) => status === 'ready' || status === 'failed')) return 'complete'
  return artifacts.every(({ status }) => status === 'queued') ? 'queued' : 'building'
}

/** Whether there is a target for which engines can be started. */
export function isDeployable({ artifacts }: Pick<ReleaseSummary, 'artifacts'>): boolean {
  return artifacts.some(({ status }) => status === 'ready')
}

/**
 * Of what the definition says, whatever the order of its keys. Entries of lists keep theirs: which of two packs is unpacked first
 * can matter. The machine that it was scanned on (`environment`) is told, and changes nothing that is built.
 */
export function contentHashOf(definition: BuildDefinition): string {
  return createHash('sha256')
    .update(canonical({ ...definition, environment: undefined }))
    .digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  const sorted = entries.sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${sorted.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(',')}}`
}

/** One that is cut again after it was removed is another: what a branch means may have moved since. Fit for the name of a folder. */
export function toReleaseId(buildId: string, contentHash: string, version: number): string {
  return `rel-${createHash('sha256').update(`${buildId}/${contentHash}/${version}`).digest('hex').slice(0, 24)}`
}

export function toArtifactId(releaseId: string, target: BuildTarget): string {
  return `art-${createHash('sha256')
    .update(`${releaseId}/${targetText(target)}`)
    .digest('hex')
    .slice(0, 24)}`
}
