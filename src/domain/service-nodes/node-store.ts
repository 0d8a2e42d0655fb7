/**
 * The processes of one service, as they know of each other. A process is a *service node* (a `node` alone is a step of a graph): it
 * has an id that is made at its start, and says again and again until when it counts as alive. Names of work that only one process
 * at a time may do are held like leases: until a moment, and renewed before it. `now` is the store's time, whoever passes it.
 */

/** What a process does: it answers clients, it runs jobs, or both. */
type NodeRole = 'all' | 'api' | 'worker'

/** What a process tells about itself. */
export interface NodeAbout {
  readonly version: string
  /** Absent: it is older than roles, and does everything. */
  readonly role?: NodeRole
  readonly host: string
  /** How many workers it has, by pool. */
  readonly workers: Readonly<Record<string, number>>
  /** How many migrations its program knows; absent: it is older than this field. */
  readonly schema?: number
}

export interface ServiceNode {
  readonly id: string
  readonly startedAt: Date
  readonly seenAt: Date
  readonly aliveUntil: Date
  readonly about: NodeAbout
}

export interface NodeBeat {
  readonly id: string
  readonly now: Date
  readonly aliveUntil: Date
  readonly about: NodeAbout
}

/** Who holds the name of some work. */
export interface Singleton {
  readonly name: string
  readonly nodeId: string
  readonly heldSince: Date
  readonly heldUntil: Date
}

interface SingletonRequest {
  readonly name: string
  readonly nodeId: string
  readonly now: Date
  readonly until: Date
}

export interface NodeStore {
  /** Says that a process lives; the first time it makes the process known. */
  beat(beat: NodeBeat): Promise<void>
  /** A process ends in order: it is no longer known, and what it held is free. */
  leave(nodeId: string): Promise<void>
  /** All that are known, those whose time is over included, by id. */
  list(): Promise<readonly ServiceNode[]>
  /**
   * Takes or renews a name, if nobody else holds it at `now`. Answers who holds it then: one statement, so that of two who ask
   * at once exactly one gets it.
   */
  takeSingleton(request: SingletonRequest): Promise<Singleton>
  /** Removes processes that ended without a word, those whose time was over before this moment; returns how many. */
  forgetNodes(deadBefore: Date): Promise<number>
}
