/**
 * What a machine that joined says of itself when engines of releases may be started on it. It travels with the beats of its process,
 * so a machine that is gone has said nothing for as long as a process that is gone.
 */
export interface MachineReport {
  /** Platforms that it makes releases for, as `os/gpu`. */
  readonly targets: readonly string[]
  /** The newest CUDA that its driver runs, by its first number; null: not known. */
  readonly cuda: number | null
  /** How many engines of releases may be up on it at a time. */
  readonly room: number
  /** Of the disk that releases are made on. */
  readonly freeBytes: number
  /** Those that it was told to serve, and those that are about to end. */
  readonly copies: readonly ReportedCopy[]
}

export interface ReportedCopy {
  readonly pool: string
  /** Whether the release's folder is on the machine. */
  readonly place: 'here' | 'coming' | 'gone'
  /** Why it is gone, and what to do; null: it is not. */
  readonly reason: string | null
  /** How far its models have come; null: they are not on their way, or nobody knows. */
  readonly staging: ReportedStaging | null
  readonly up: number
  readonly ready: number
  readonly busy: number
  /** Why no engine of it becomes ready; null: one may still. */
  readonly failure: string | null
}

export interface ReportedStaging {
  readonly modelsDone: number
  readonly modelsTotal: number
  readonly bytesDone: number
  /** null: not known. */
  readonly bytesTotal: number | null
  /** null: none is. */
  readonly currentModel: string | null
}
