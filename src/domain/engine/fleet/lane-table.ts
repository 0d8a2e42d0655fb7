/**
 * The known lanes and what their jobs need: a lane holds the waiting jobs that need the same classes and weights of an engine.
 * Which engine serves which lane is worked out once per lane and catalog. There are as many lanes as kinds of graphs; beyond
 * the bound the least recently learnt one is forgotten, and learnt again from the store.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { meets, type Needs } from '../../workflows/needs.ts'

/** The lane of jobs that were accepted before their needs were known: every engine may try them. */
export const ANY_LANE = '*'
/** Jobs have no lane in a pool in which every engine runs everything. */
export const NO_LANE = ''

export interface LaneTable {
  /** Remembers what the jobs of a lane need. */
  learn(lane: string, needs: Needs): void
  needsOf(lane: string): Needs | null
  lanes(): readonly string[]
  /** The lanes that an engine with this catalog can serve. */
  servedBy(catalog: NodeCatalog): readonly string[]
}

export function createLaneTable({ maxLanes = 1000 } = {}): LaneTable {
  const known = new Map<string, Needs | null>([[ANY_LANE, null]])
  // Per catalog object: a refreshed catalog is a new one.
  let served = new WeakMap<NodeCatalog, string[]>()

  return {
    learn(lane, needs) {
      const isNew = !known.has(lane)
      known.delete(lane)
      known.set(lane, needs)
      if (known.size > maxLanes) {
        const oldest = [...known.keys()].find((each) => each !== ANY_LANE && each !== lane)
        if (oldest !== undefined) known.delete(oldest)
      }
      if (isNew) served = new WeakMap()
    },
    needsOf: (lane) => known.get(lane) ?? null,
    lanes: () => [...known.keys()],
    servedBy(catalog) {
      let lanes = served.get(catalog)
      if (lanes === undefined) {
        lanes = [...known].filter(([, needs]) => needs === null || meets(catalog, needs)).map(([lane]) => lane)
        served.set(catalog, lanes)
      }
      return lanes
    },
  }
}
