/**
 * The engines of a service, as its processes know of each other's. An engine that a process of its own belongs to (the built-in one,
 * a server that it started) is published by that process; a server that several processes were given is driven by one of them at a
 * time, the one that holds it. `now` is the store's time, whoever passes it.
 */
import type { EngineStatus } from '../fleet/engine-status.ts'

/** What an operator wants of an engine. */
export type EngineWill = 'open' | 'cordoned' | 'draining'

/** What the process that drives an engine says of it. */
export interface PublishedEngine {
  /** Another process may drive it once this one is gone. */
  readonly isShared: boolean
  /** What it can run, by the hash under which that was put; null: it has never been reached. */
  readonly catalogHash: string | null
  readonly status: EngineStatus
}

export interface EngineRecord extends PublishedEngine {
  /** The process that drives it, or did so last; '' for one that is only remembered. */
  readonly nodeId: string
  /** Until when that process may give it work. */
  readonly heldUntil: Date
  readonly seenAt: Date
  readonly will: EngineWill
  /** Rises with every wish of an operator, so that the same wish twice is seen twice. */
  readonly willNumber: number
}

interface Publication {
  readonly nodeId: string
  readonly engines: readonly PublishedEngine[]
  readonly now: Date
  readonly until: Date
  /**
   * Engines whose holder did not renew them in time may be taken from it. Not right after an outage of the store, when nobody
   * could.
   */
  readonly takesLapsed: boolean
}

interface ForgottenEngines {
  readonly sharedBefore: Date
  readonly ownBefore: Date
  /** These whatever their age; left out: none. */
  readonly engineIds?: readonly string[]
}

export interface EngineRegistry {
  /**
   * Takes each engine that nobody else holds at `now`, or renews it, and writes what is said of it. Returns the ids of those that
   * are held then; of the others nothing is written.
   */
  publish(publication: Publication): Promise<readonly string[]>
  /** A process ends in order: what it held is free, and engines that belong to it alone are gone. */
  leave(nodeId: string): Promise<void>
  /** All that are known, by id. */
  list(): Promise<readonly EngineRecord[]>
  /** Says what an operator wants of an engine. False: there is none with this id. */
  setWill(engineId: string, will: EngineWill): Promise<boolean>
  /** Stores what engines can run, once per content. */
  putCatalog(hash: string, text: string): Promise<void>
  /** Those that are stored. */
  findCatalogs(hashes: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** How many bytes those have that are stored, without reading them. */
  measureCatalogs(hashes: readonly string[]): Promise<ReadonlyMap<string, number>>
  /**
   * Removes engines that were last seen before a moment (those that belong to one process alone before another), those that are
   * named, and what only they could run; returns how many.
   */
  forget(options: ForgottenEngines): Promise<number>
}
