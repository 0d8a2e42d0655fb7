/**
 * The lanes that are known, with what their jobs need. Which engine serves which lane is worked out once per lane and catalog
 * and kept. There are as many lanes as kinds of graphs. Beyond the bound the least recently learnt one is forgotten, and learnt
 * again from the store.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { meets, type Needs } from '../../workflows/needs.ts'
import { ANY_LANE } from './lane-offers.ts'

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
