/**
 * The processes of one service, as they know of each other. A process is a *service node* (a `node` alone is a step of a graph): it
 * has an id that is made at its start, and says again and again until when it counts as alive. Names of work that only one process
 * at a time may do are held like leases: until a moment, and renewed before it. `now` is always the store's time.
 */
import type { MachineReport } from './machine-report.ts'

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
  /** Where other processes hear live what runs there; absent: nowhere. */
  readonly address?: string
  /** The address of its listener, as it knows it itself; absent: it does not listen yet. */
  readonly url?: string
  /** It is about to end. */
  readonly isDraining?: boolean
  /** How many migrations its program knows; absent: it is older than this field. */
  readonly schema?: number
  /** The process through which a joined worker tells live what its jobs do; absent: it is no joined worker. */
  readonly via?: string
  /** How much it has open of what is limited over all processes, by name; absent: little. */
  readonly counts?: Readonly<Record<string, number>>
  /** Of a joined worker on which engines of releases may be started; absent: none may. */
  readonly machine?: MachineReport
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
  /** Names of work that the process takes, or renews, if nobody else holds them at `now`; left out: none. */
  readonly wanted?: readonly WantedName[]
}

export interface WantedName {
  readonly name: string
  readonly until: Date
}

interface BeatAnswer {
  /** The time of the store; null: it has no clock of its own. */
  readonly time: Date | null
  /** Which of the wanted names the process holds now. */
  readonly held: readonly string[]
}

/** What a process holds of the work of the service. */
interface NodeHoldings {
  readonly nodeId: string
  /** Jobs and calls of models under its lease. */
  readonly jobs: number
  readonly calls: number
  /** Names of work that only one process does, in order. */
  readonly names: readonly string[]
}

export interface NodeStore {
  /**
   * Says that a process lives; the first time it makes the process known. Takes the names that it wants in the same write, so that
   * of two who want one at once exactly one gets it, and a beat asks the store once.
   */
  beat(beat: NodeBeat): Promise<BeatAnswer>
  /** A process ends in order: it is no longer known, and what it held is free. */
  leave(nodeId: string): Promise<void>
  /** All that are known, those whose time is over included, by id. */
  list(): Promise<readonly ServiceNode[]>
  /** Of each process that holds anything at `now`, by id. */
  holdings(now: Date): Promise<readonly NodeHoldings[]>
  /** Removes processes that ended without a word, those whose time was over before this moment; returns how many. */
  forgetNodes(deadBefore: Date): Promise<number>
}
