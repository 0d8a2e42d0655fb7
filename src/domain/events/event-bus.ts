/**
 * Notices between the parts of a service, in one process or in many. `changed` says that a job has a newer version: listeners
 * re-read, so a lost notice costs nothing. `live` carries what is never stored (previews, node-level detail) and may be dropped
 * for slow readers. `work` wakes workers. `directory` says that a list which every process keeps in memory has a newer version,
 * `call` that a model call ended, is to stop or waits. The bus is best effort by contract: whatever it loses, the next snapshot
 * or poll makes up for. All notices have a wire form (notice-lines.ts), so that any medium can carry them.
 */
export interface JobChanged {
  readonly jobId: string
  readonly accountId: string
  readonly version: number
  /** Absent when the job did not move in the queue, as with progress. */
  readonly move?: JobMove
  /** Only the progress of the job has changed: the notice goes to watchers of this job, in any process, and to no other listener. */
  readonly isDetail?: true
  /** The notice came from another process: this one may not have known the job before. */
  readonly isRemote?: true
}

/**
 * A step through the queue, for counters: accepted, taken by a worker, given back by one, ended while it waited (`dropped`),
 * ended after a worker had taken it (`ended`).
 */
export const JOB_MOVES = ['queued', 'taken', 'returned', 'dropped', 'ended'] as const
export type JobMove = (typeof JOB_MOVES)[number]

export interface JobLive<Event> {
  readonly jobId: string
  readonly accountId: string
  readonly event: Event
  /**
   * The event happened before this listener subscribed: it shows how far the run is, and is not new. Only for runs in other
   * processes; events of runs in this process are not repeated. Transit times are unknown, so an event from a moment before the
   * subscription may be delivered without this mark; a new event never carries it.
   */
  readonly isPast?: true
}

/**
 * Which live notices a listener gets: those of one job, those of one account, or all that this process itself publishes.
 * Between processes, only notices that have a listener are sent.
 */
export type LiveTopic = { readonly jobId: string } | { readonly accountId: string } | 'published_here'

/** The lists that every process keeps in memory. `engine-lists`: what its own engines can run, to be asked for again. */
export const DIRECTORIES = ['accounts', 'keys', 'deployments', 'engines', 'engine-lists', 'models'] as const
export type Directory = (typeof DIRECTORIES)[number]

export interface DirectoryChanged {
  readonly directory: Directory
  /** Of the list as a whole; a process that has this version or a later one need not read it again. */
  readonly version: number
}

/** `ended`: its result can be read. `stop`: the process that drives it must stop it. `waits`: it was queued and may be taken. */
export const CALL_MOVES = ['ended', 'stop', 'waits'] as const

export interface CallMoved {
  readonly callId: string
  readonly accountId: string
  readonly move: (typeof CALL_MOVES)[number]
}

export type Unsubscribe = () => void

export interface EventBus<Event> {
  /** Whether other processes may publish here, too. */
  readonly hasOthers: boolean
  publishChanged(notice: JobChanged): void
  publishLive(notice: JobLive<Event>): void
  /** Work may be waiting: a job was queued, or an ended one has freed capacity. Without a pool: in any. */
  publishWork(pool?: string): void
  publishDirectory(notice: DirectoryChanged): void
  publishCall(notice: CallMoved): void
  onChanged(listener: (notice: JobChanged) => void): Unsubscribe
  onLive(topic: LiveTopic, listener: (notice: JobLive<Event>) => void): Unsubscribe
  /** `isRemote`: another process said so, and perhaps has taken the work already. */
  onWork(listener: (pool: string | undefined, isRemote: boolean) => void): Unsubscribe
  onDirectory(listener: (notice: DirectoryChanged) => void): Unsubscribe
  onCall(listener: (notice: CallMoved) => void): Unsubscribe
  /** Notices of other processes may have been lost until now: listeners should read what they follow again. */
  onGap(listener: () => void): Unsubscribe
}
