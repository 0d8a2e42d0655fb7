import type { JobStatus } from './transitions.ts'

export type OutputType = 'image' | 'video' | 'audio' | 'text' | 'file' | 'latent'

/** A committed output: an asset of this job plus where it came from. */
export interface Output {
  readonly assetId: string
  readonly nodeId: string
  readonly name: string
  readonly type: OutputType
  readonly contentType: string
  readonly sizeBytes: number
  readonly hash: string
  /** Where the engine had put it; present only while it is being committed. */
  readonly location?: OutputLocation
}

export interface OutputLocation {
  readonly folder: 'output' | 'temp' | 'input'
  /** '' for none. */
  readonly subfolder: string
  /** Readable by its name but not listed among the job's outputs: a preview file. */
  readonly isUnlisted: boolean
}

/** A complete snapshot; `value` never goes down in the life of a job. */
export interface Progress {
  readonly value: number
  readonly nodesDone: number
  readonly nodesTotal: number
  readonly currentNode: string | null
  readonly currentNodeClass: string | null
  readonly step: number | null
  readonly steps: number | null
  readonly message: string | null
}

export interface JobError {
  readonly code: string
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
  readonly traceback: string | null
}

export interface Job {
  readonly id: string
  readonly accountId: string
  /** Whose workers run it: the common pool, or a deployment's. */
  readonly pool: string
  readonly status: JobStatus
  readonly priority: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
  readonly expiresAt: Date
  /** 1 = next; null unless queued. Exact near the head, an estimate far from it. */
  readonly queuePosition: number | null
  readonly progress: Progress | null
  /** Of the attempt under way, or of the last one: a new attempt starts without any. */
  readonly outputs: readonly Output[]
  readonly error: JobError | null
  readonly outputsReused: boolean
  /** How many outputs of earlier attempts were listed and no longer are. */
  readonly outputsReplaced: number
  /** The job whose result answered this one, which never ran; left out: it was, or will be, run itself. */
  readonly reusedFrom?: string
  /** It is held until then, or was; left out: it was not asked to be. */
  readonly notBefore?: Date
  /** Where it still waits then it ends `expired`; left out: it may wait until its retention is over. */
  readonly queueUntil?: Date
  readonly attempt: number
  /** Grows with every change of the job that a reader could see. */
  readonly version: number
}

/** What the run printed. `text` is the tail when `truncated`. */
export interface JobLog {
  readonly text: string
  readonly truncated: boolean
  readonly capturedAt: Date
  readonly complete: boolean
  /** Which node printed which lines, as JSON (log-lines.ts); left out or null: not known. */
  readonly marks?: string | null
}

/** A file that the graph names, pinned when the job was submitted. */
export interface JobInput {
  readonly name: string
  readonly hash: string
  readonly sizeBytes: number
  readonly contentType: string
}

/** How a job was submitted, beyond what it needs to run. Never a credential. */
export interface Submission {
  /** The queue number that the caller asked for or was given, as the text of a JSON number. */
  readonly number: string
  /** The client that gets the events of the run; null: all clients of the account. */
  readonly clientId: string | null
  readonly workflowId: string | null
  /** The caller's own data without credentials, as JSON text. */
  readonly extraData: string
  /** Output nodes that run. */
  readonly outputs: readonly string[]
  /** The whole graph as JSON text when only a part of it runs; null when all of it does. */
  readonly wholeWorkflow: string | null
}
