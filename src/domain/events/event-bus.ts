/**
 * Notices about jobs. `changed` says that a job has a newer version: listeners re-read, so a lost notice costs
 * nothing. `live` carries what is never stored (previews, node-level detail) and may be dropped for slow readers.
 * `work` wakes workers. The bus is best effort by contract: whatever it loses, the next snapshot or poll makes up for.
 */
export interface JobChanged {
  readonly jobId: string
  readonly accountId: string
  readonly version: number
  /** Absent when the job did not move in the queue, as with progress. */
  readonly move?: JobMove
}

/**
 * A step through the queue, for counters: accepted, taken by a worker, given back by one, ended while it waited (`dropped`),
 * ended after a worker had taken it (`ended`).
 */
export type JobMove = 'queued' | 'taken' | 'returned' | 'dropped' | 'ended'

export interface JobLive<Event> {
  readonly jobId: string
  readonly accountId: string
  readonly event: Event
}

export type Unsubscribe = () => void

export interface EventBus<Event> {
  publishChanged(notice: JobChanged): void
  publishLive(notice: JobLive<Event>): void
  /** Work may be waiting: a job was queued, or an ended one has freed capacity. Without a pool: in any. */
  publishWork(pool?: string): void
  onChanged(listener: (notice: JobChanged) => void): Unsubscribe
  onLive(listener: (notice: JobLive<Event>) => void): Unsubscribe
  onWork(listener: (pool: string | undefined) => void): Unsubscribe
}
