/** Turns definitions into locks and locks into folders that an engine can be started from. */
import type { SystemUser } from '../../../lib/processes/kept-process.ts'
import type { BlobKind } from './blob.ts'
import type { BuildDefinition, BuildTarget } from './definition.ts'
import type { DiskQuota } from './disk-quota.ts'
import type { ReleaseLock } from './lock.ts'

/** In this order. What fails is told as `<phase>: <cause>`. */
export type BuildPhase = 'start' | 'freeze' | 'assemble' | 'validate' | 'hash'

/** The release cannot be made; its author reads the text, so it says what to do. Anything else that is thrown is a fault of the service. */
export class BuildFailure extends Error {
  readonly phase: BuildPhase
  /** Without the phase, for who tells it as the failure of something else than a build. */
  readonly problem: string

  constructor(phase: BuildPhase, problem: string) {
    super(`${phase}: ${problem}`)
    this.phase = phase
    this.problem = problem
  }
}

/** This builder lacks something, such as room, a Python or a folder of models: another one may be able to. */
export class BuilderLacks extends BuildFailure {}

export interface BaseImage {
  readonly id: string
  readonly label: string
  readonly python: string
  readonly torch: string
  readonly targets: readonly BuildTarget[]
  readonly isDefault: boolean
}

/** How far the models of a release have come onto this machine. */
export interface Staging {
  readonly modelsDone: number
  readonly modelsTotal: number
  readonly bytesDone: number
  /** null: their sizes are known only when they are here. */
  readonly bytesTotal: number | null
  /** The name of the file that is on its way; null: none is. */
  readonly currentModel: string | null
}

export interface BuildRequest {
  /** Names the folder; the same release has the same folder. */
  readonly releaseId: string
  readonly definition: BuildDefinition
  readonly target: BuildTarget
  /** null: it is the first target of the release, and is frozen now. */
  readonly lock: ReleaseLock | null
  /** The bytes of an uploaded pack or model of the account. Throws BuildFailure when they are gone. */
  readonly openBlob: (blobId: string, kind: BlobKind) => Promise<NodeJS.ReadableStream>
  /** Of its account; left out: it takes what it needs. */
  readonly quota?: DiskQuota
  /** Called as soon as it is known what exactly is made, before it is. */
  readonly note: (lock: ReleaseLock) => Promise<void>
  /** Left out: nobody looks. Called for every piece that comes. */
  readonly stage?: (staging: Staging) => void
  /** A line of the build's log, without credentials. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

export interface BuiltRelease {
  readonly lock: ReleaseLock
  /** Of everything in the folder but the models. */
  readonly archiveSha256: string
  readonly sizeBytes: number
  /** Which classes each pack brought, as the import test found them. */
  readonly classes: Readonly<Record<string, readonly string[]>>
}

/** Where a finished release lies on this machine, for whoever starts engines from it. */
export interface ReleaseFolder {
  /** The interpreter of its environment, absolute. */
  readonly python: string
  /** The folder with `main.py`, absolute. */
  readonly comfyui: string
  /** Whose code it holds runs as this user; absent or null: as the service. */
  readonly user?: SystemUser | null
}

export interface Builder {
  readonly targets: readonly BuildTarget[]
  readonly baseImages: readonly BaseImage[]
  /** Goes on where an interrupted build of the same release stopped, or starts clean. Throws BuildFailure. */
  build(request: BuildRequest): Promise<BuiltRelease>
  /** null: it was not built here, or is gone. */
  find(releaseId: string, target: BuildTarget): Promise<ReleaseFolder | null>
  /**
   * Removes the folders of releases that are not kept, and what builds left behind. Each is asked about just before it would go.
   * Resolves with the bytes that were freed.
   */
  keepOnly(isKept: (releaseId: string) => Promise<boolean>, before: TidyBefore): Promise<number>
}

/** What is younger stays, although nothing names it. */
export interface TidyBefore {
  readonly finished: Date
  /** Models that no release has, whole or in part: the next build may go on with them. A full folder does not wait for it. */
  readonly fetched: Date
}
