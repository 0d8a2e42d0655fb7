/**
 * The known lanes and what their jobs need: a lane holds the waiting jobs that need the same classes and weights of an engine.
 * Which engine serves which lane is worked out once per lane and catalog. There are as many lanes as kinds of graphs; beyond
 * the bound the least recently learnt one is forgotten, and learnt again from the store when its turn comes.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { meets, type Needs } from '../../workflows/needs.ts'

/** The lane of jobs that were accepted before their needs were known: every engine may try them. */
export const ANY_LANE = '*'
/** Jobs have no lane in a pool in which every engine runs everything. */
export const NO_LANE = ''

export interface LaneTable {
  /** How many it keeps. */
  readonly maxLanes: number
  /** Remembers what the jobs of a lane need. */
  learn(lane: string, needs: Needs): void
  needsOf(lane: string): Needs | null
  lanes(): readonly string[]
  /** The lanes that an engine with this catalog can serve. */
  servedBy(catalog: NodeCatalog): readonly string[]
}

/** Which of the lanes of one moment an engine serves. */
interface Verdicts {
  readonly version: number
  readonly isServed: ReadonlyMap<string, boolean>
  readonly lanes: readonly string[]
}

export function createLaneTable({ maxLanes = 1000 } = {}): LaneTable {
  const known = new Map<string, Needs | null>([[ANY_LANE, null]])
  // Per catalog object: a refreshed catalog is a new one.
  const verdicts = new WeakMap<NodeCatalog, Verdicts>()
  let version = 0

  /** Only lanes that are new to a catalog are held against it. */
  function judge(catalog: NodeCatalog): Verdicts {
    const before = verdicts.get(catalog)
    if (before?.version === version) return before
    const isServed = new Map(
      [...known].map(([lane, needs]) => [
        lane,
        before?.isServed.get(lane) ?? (needs === null || meets(catalog, needs)),
      ]),
    )
    const lanes = [...known.keys()].filter((lane) => isServed.get(lane) === true)
    const judged = { version, isServed, lanes }
    verdicts.set(catalog, judged)
    return judged
  }

  return {
    maxLanes,
    learn(lane, needs) {
      const isNew = !known.has(lane)
      known.delete(lane)
      known.set(lane, needs)
      if (known.size > maxLanes) {
        const oldest = [...known.keys()].find((each) => each !== ANY_LANE && each !== lane)
        if (oldest !== undefined) known.delete(oldest)
      }
      if (isNew) version += 1
    },
    needsOf: (lane) => known.get(lane) ?? null,
    lanes: () => [...known.keys()],
    servedBy: (catalog) => judge(catalog).lanes,
  }
}
