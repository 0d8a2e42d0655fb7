/**
 * What engines with a free slot offer to the queue: the lanes that each can serve, ranked by how well its loaded weights fit. The
 * store only compares keys and ranks.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { LaneTable } from '../../workflows/needs.ts'
import type { OtherEngine } from '../directory/followed-engines.ts'
import type { FleetMember } from './fleet-member.ts'

/**
 * 0: everything the lane needs is loaded here; 1: some of it is; from 2 on: nothing is, and `rank - 2` other engines have it all. An
 * engine that broke off its latest run comes last. Lower ranks are taken first, among accounts that have credit; from 2 on, where
 * weights must be loaded, the lane for which the most accounts wait, for each engine that would then have them.
 */
export type LaneRank = number

/** Behind every other engine that could take the job. */
export const LAST_RANK: LaneRank = 1002

interface LaneOffer {
  readonly lane: string
  readonly rank: LaneRank
  /** How long a run of the lane takes, as far as is known; left out: nothing is. Its account is charged so much until it has ended. */
  readonly foreseenMs?: number
}

export interface EngineOffer {
  readonly engineId: string
  /** null: this engine takes whatever waits in the pool, in plain order. */
  readonly lanes: readonly LaneOffer[] | null
}

interface OfferContext {
  /** Every member of the fleet. */
  readonly all: readonly FleetMember[]
  /** Engines of other processes. */
  readonly others: readonly OtherEngine[]
  readonly lanes: LaneTable
}

/** `free`: the members that may be given a run now. */
export function offerLanes(free: readonly FleetMember[], context: OfferContext): EngineOffer[] {
  const { lanes } = context
  const order = free.toSorted(
    (one, other) =>
      Number(one.brokeLatestRun) - Number(other.brokeLatestRun) ||
      Number(one.loaded.hasAny()) - Number(other.loaded.hasAny()) ||
      one.running - other.running,
  )
  return order.map((member) => ({
    engineId: member.id,
    lanes: servedLanes(member, lanes).map((lane) => ({
      lane,
      rank: rankLane(member, lane, context),
      foreseenMs: lanes.foreseenMs(lane),
    })),
  }))
}

/** The lanes that an engine can serve with its catalog, whether or not it has a free slot. */
export function servedLanes(member: Pick<FleetMember, 'catalog'>, lanes: LaneTable): readonly string[] {
  const catalog = member.catalog()
  return catalog === null ? [] : lanes.servedBy(catalog)
}

/** An engine of another process that asks for work, as that process describes it. */
export interface DistantEngine {
  readonly id: string
  readonly catalog: NodeCatalog | null
  readonly loadedWeights: readonly string[]
  readonly brokeLatestRun: boolean
}

/** What such an engine offers. `others`: all other engines of the service. */
export function offerDistant(
  engine: DistantEngine,
  { others, lanes }: { readonly others: readonly OtherEngine[]; readonly lanes: LaneTable },
): EngineOffer {
  const loaded = new Set(engine.loadedWeights)
  const rankOf = (lane: string): LaneRank => {
    const weights = lanes.needsOf(lane)?.weights ?? []
    if (engine.brokeLatestRun) return LAST_RANK
    if (weights.every((name) => loaded.has(name))) return 0
    if (weights.some((name) => loaded.has(name))) return 1
    return 2 + countLoaded(others, weights)
  }
  const served = servedLanes({ catalog: () => engine.catalog }, lanes)
  return {
    engineId: engine.id,
    lanes: served.map((lane) => ({ lane, rank: rankOf(lane), foreseenMs: lanes.foreseenMs(lane) })),
  }
}

function countLoaded(others: readonly OtherEngine[], weights: readonly string[]): number {
  return others.filter(
    ({ status }) => status.state === 'ready' && weights.every((name) => status.loadedWeights.includes(name)),
  ).length
}

function rankLane(member: FleetMember, lane: string, { all, others, lanes }: OfferContext): LaneRank {
  const weights = lanes.needsOf(lane)?.weights ?? []
  // What it had loaded may be gone, and the job that it broke off should go to another engine.
  if (member.brokeLatestRun) return LAST_RANK
  if (weights.length === 0 || member.loaded.hasAll(weights)) return 0
  if (member.loaded.hasSome(weights)) return 1
  const here = all.filter(
    (other) => other !== member && !other.brokeLatestRun && other.state() === 'ready' && other.loaded.hasAll(weights),
  )
  return 2 + here.length + countLoaded(others, weights)
}
