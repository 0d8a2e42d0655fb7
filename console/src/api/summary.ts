/** A job as lists and the stream of changes carry it: no graph, no log. */
export const JOB_STATUSES = ['queued', 'running', 'canceling', 'succeeded', 'failed', 'canceled', 'expired'] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

export interface JobError {
  readonly code: string
  readonly message: string
  readonly node_id: string | null
  readonly class_type: string | null
  /** The same for failures of one reason. */
  readonly signature: string
}

export interface Summary {
  readonly id: string
  readonly version: number
  readonly status: JobStatus
  readonly title: string
  readonly pool: string
  readonly engine: string | null
  readonly priority: number
  readonly attempt: number
  readonly created_at: string
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly expires_at: string
  /** 0 to 1. */
  readonly value: number | null
  readonly node: { readonly id: string; readonly class_type: string | null } | null
  readonly step: number | null
  readonly steps: number | null
  readonly error: JobError | null
  readonly cost_usd: string | null
  readonly outputs: number
  readonly thumb: { readonly asset_id: string; readonly type: string } | null
  readonly queue_position: number | null
  /** The job whose result answered this one. */
  readonly reused_from: string | null
  readonly metadata: Readonly<Record<string, string>>
}

const NOTHING = {
  ...{ engine: null, started_at: null, completed_at: null, value: null, node: null, step: null, steps: null },
  ...{ error: null, cost_usd: null, thumb: null, queue_position: null, reused_from: null },
} as const

/** A list leaves out what is null. */
export type CompactSummary = Omit<Summary, keyof typeof NOTHING> & Partial<Summary>

export function toSummary(compact: CompactSummary): Summary {
  return { ...NOTHING, ...compact }
}

export type Counts = Readonly<Record<JobStatus, number>>

export interface JobPage {
  readonly jobs: readonly Summary[]
  readonly next_cursor: string | null
  readonly counts: Counts | null
  readonly now: string
}

const ENDED: Readonly<Record<JobStatus, boolean>> = {
  queued: false,
  running: false,
  canceling: false,
  succeeded: true,
  failed: true,
  canceled: true,
  expired: true,
}

export function isEnded(status: JobStatus): boolean {
  return ENDED[status]
}

/** Whether asking to cancel would change anything. */
export function isCancelable(status: JobStatus): boolean {
  return status === 'queued' || status === 'running'
}
