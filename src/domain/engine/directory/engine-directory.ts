/**
 * What the engines of the whole service can run, wherever they are: graphs are validated against it, jobs get their lanes from it,
 * and a job waits only if some engine can run it. Which engine has a free slot here is the fleet's business. What engines of joined
 * workers can run counts for jobs of their own pools alone.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { ServiceError } from '../../errors.ts'
import { ANY_LANE, findLacks, type LaneTable, meets, NO_LANE, needsOf, type PlacedLack } from '../../workflows/needs.ts'
import { uniteCatalogs } from '../../workflows/union-catalog.ts'
import { mayRun, readCopyPool } from '../copy-pool.ts'
import type { EngineStatus } from '../fleet/engine-status.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { EngineLog } from '../fleet/fleet-engine.ts'
import { type DistantEngine, type EngineOffer, offerDistant } from '../fleet/lane-offers.ts'
import { type FindWeights, findWhereabouts, placeLacks } from '../weights/missing-weights.ts'
import {
  type Availability,
  compareWeights,
  findAvailability,
  type ListedWeight,
  type WeightFile,
  weightFilesOf,
} from '../weights/weight-files.ts'
import type { OtherEngine } from './followed-engines.ts'

/** An engine of the service and the process that drives it; null: none at the moment. */
export interface ListedEngine extends EngineStatus {
  readonly drivenBy: string | null
}

interface DirectoryDeps {
  readonly fleet: Pick<Fleet, 'hasLanes' | 'engines' | 'logOf' | 'status' | 'announce' | 'hasOther'>
  /** The same as the fleet's. */
  readonly lanes: LaneTable
  /** The id of this process. */
  readonly nodeId: string
  /** Engines that are not driven here; left out: there are none. */
  readonly others?: () => readonly OtherEngine[]
}

/** What was united to one catalog, and the outcome. */
interface Union {
  readonly own: readonly NodeCatalog[]
  readonly guests: readonly NodeCatalog[]
  readonly catalog: NodeCatalog
}

// One per pool that is in use; uniting again costs little.
const MAX_UNIONS = 256

export type EngineDirectory = ReturnType<typeof createEngineDirectory>

export function createEngineDirectory(given: DirectoryDeps) {
  const deps = { ...given, others: given.others ?? (() => []) }
  const { fleet, others } = deps
  const catalogs = createCatalogs(deps)
  const { status, weights, asOthers } = createLists(deps)
  const findWeights = (wanted: Parameters<FindWeights>[0], pool: string) => findWhereabouts(wanted, weights(pool))

  return {
    hasLanes: fleet.hasLanes,
    catalog: catalogs.united,
    weights,
    /** Where a file of weights belongs, and which engines for jobs of this pool have it. */
    findWeights,
    isCatalogOpen: catalogs.isOpen,
    status,
    /** Throws `not_found`. */
    find(engineId: string): ListedEngine {
      const engine = status().find(({ id }) => id === engineId)
      if (engine === undefined) throw new ServiceError('not_found', 'there is no engine with this id')
      return engine
    },
    /** What an engine of this process printed lately; null: it is elsewhere, or nobody listens to it. */
    logOf: (engineId: string): EngineLog | null => fleet.logOf(engineId),
    /** What engines of another process that asks for work may be given. One that is not known here yet is offered nothing. */
    offersOf(engines: readonly Omit<DistantEngine, 'catalog'>[]): EngineOffer[] {
      const all = others()
      return engines.flatMap((engine) => {
        const known = all.find(({ status: { id } }) => id === engine.id)
        if (known === undefined) return []
        const rest = [...all.filter((other) => other !== known), ...asOthers()]
        return [offerDistant({ ...engine, catalog: known.catalog }, { others: rest, lanes: deps.lanes })]
      })
    },
    /** A joined worker's run of the lane took so long. */
    noteRun: deps.lanes.noteRun,
    /** Whether an engine is ready and can run jobs of the lane that no process with this id drives. */
    isServedBeside(nodeId: string, lane: string): boolean {
      const own = status().filter(({ drivenBy }) => drivenBy === nodeId)
      return fleet.hasOther(new Set(own.map(({ id }) => id)), lane)
    },
    ...createLaneRules(deps, catalogs, weights),
    /** Which engines have a class, and which have a file of weights; those that are away included. */
    availability(): Availability {
      const here = fleet.engines()
      const isHere = new Set(here.map(({ id }) => id))
      const elsewhere = others().filter(({ status: { id } }) => !isHere.has(id))
      return findAvailability([
        ...here,
        ...elsewhere.map(({ status: { id }, catalog: known }) => ({ id, catalog: () => known })),
      ])
    },
  }
}

type AllDeps = DirectoryDeps & Required<Pick<DirectoryDeps, 'others'>>

/** What engines can run, here and elsewhere. */
function createCatalogs({ fleet, others }: AllDeps) {
  const unions = new BoundedMap<string, Union>(MAX_UNIONS)

  /** Of the service's own engines; null for one that has never been reached. */
  function ownCatalogs(pool?: string): readonly (NodeCatalog | null)[] {
    const here = fleet.engines().filter((engine) => pool === undefined || mayRun(engine.pool, pool))
    const elsewhere = others().filter(
      ({ pools }) => pools === 'every' && (pool === undefined || readCopyPool(pool) === null),
    )
    return [...here.map((engine) => engine.catalog()), ...elsewhere.map(({ catalog }) => catalog)]
  }

  /** Of the engines of joined workers that may run jobs of a pool; left out: of any. */
  function guestCatalogs(pool?: string): readonly (NodeCatalog | null)[] {
    return others().flatMap(({ pools, catalog }) =>
      pools !== 'every' && (pool === undefined || pools.has(pool)) ? [catalog] : [],
    )
  }

  /** Those that are known, the service's own first: what a class is, the first one that has it says. */
  function known(pool?: string): readonly NodeCatalog[] {
    return toKnown([...ownCatalogs(pool), ...guestCatalogs(pool)])
  }

  /** What the engines can run together for jobs of a pool, those that are away just now included. */
  function united(pool: string): NodeCatalog {
    const own = toKnown(ownCatalogs(pool))
    const guests = toKnown(guestCatalogs(pool))
    const last = unions.get(pool)
    if (last !== undefined && isEqual(last.own, own) && isEqual(last.guests, guests)) return last.catalog
    const catalog = uniteCatalogs(own, guests)
    unions.set(pool, { own, guests, catalog })
    return catalog
  }

  /** What some engine can run is unknown, or no engine is known at all: no graph can be ruled out. */
  function isOpen(pool?: string): boolean {
    const all = [...ownCatalogs(pool), ...guestCatalogs(pool)]
    return all.length === 0 || all.includes(null)
  }

  return { known, united, isOpen }
}

/** Engines and their files of weights, here and elsewhere. */
function createLists({ fleet, nodeId, others }: AllDeps) {
  const enginesFor = (pool: string | undefined) =>
    fleet.engines().filter((engine) => pool === undefined || mayRun(engine.pool, pool))
  const isFor = (pools: OtherEngine['pools'], pool: string | undefined) =>
    pool === undefined || (pools === 'every' ? readCopyPool(pool) === null : pools.has(pool))

  /** Those of this process, as another one would see them. */
  function asOthers(): OtherEngine[] {
    return fleet
      .status()
      .map((engine) => ({ status: engine, catalog: null, weights: null, drivenBy: nodeId, pools: 'every' }))
  }

  /** All engines; with a pool, those that may run its jobs. */
  function status(pool?: string): ListedEngine[] {
    const isAsked = new Set(enginesFor(pool).map(({ id }) => id))
    const own = fleet.status().filter(({ id }) => isAsked.has(id))
    const here = own.map((engine): ListedEngine => ({ ...engine, drivenBy: nodeId }))
    const elsewhere = others()
      .filter(({ pools }) => isFor(pools, pool))
      .map((other): ListedEngine => ({ ...other.status, drivenBy: other.drivenBy }))
    const isElsewhere = new Set(elsewhere.map(({ id }) => id))
    // One that stands by here is shown as whoever drives it says.
    const shown = here.filter(({ id, state }) => state !== 'standby' || !isElsewhere.has(id))
    const isShown = new Set(shown.map(({ id }) => id))
    return [
      ...shown.map((engine) => (engine.state === 'standby' ? { ...engine, drivenBy: null } : engine)),
      ...elsewhere.filter(({ id }) => !isShown.has(id)),
    ]
  }

  /** The files of weights of all engines, in order; with a pool, of those that may run its jobs. */
  function weights(pool?: string): ListedWeight[] {
    const here = enginesFor(pool)
    const isHere = new Set(fleet.engines().map(({ id }) => id))
    const elsewhere = others().filter(({ status: { id }, pools }) => !isHere.has(id) && isFor(pools, pool))
    const loaded = new Map(status(pool).map(({ id, loadedWeights }) => [id, new Set(loadedWeights)]))
    const toListed = (engineId: string, files: readonly WeightFile[]) =>
      files.map((file) => ({ ...file, engineId, isLoaded: loaded.get(engineId)?.has(file.name) === true }))
    return [
      ...here.flatMap((engine) => toListed(engine.id, engine.weightFiles())),
      ...elsewhere.flatMap((other) => toListed(other.status.id, weightFilesOf(other.catalog, other.weights))),
    ].sort(compareWeights)
  }

  return { asOthers, status, weights }
}

/** Which jobs wait together, and what none of the engines has for them. */
function createLaneRules(
  { fleet, lanes }: AllDeps,
  catalogs: ReturnType<typeof createCatalogs>,
  weights: (pool: string) => ListedWeight[],
) {
  const { hasLanes } = fleet
  return {
    /** The lane of a graph's jobs. */
    laneOf(graph: Graph, pool: string): string {
      if (!hasLanes) return NO_LANE
      const needs = needsOf(graph, catalogs.known(pool))
      lanes.learn(needs.key, needs)
      return needs.key
    },
    /** Learns a lane from one of its jobs, found in the store. */
    learnLane(lane: string, graph: Graph, pool: string): void {
      lanes.learn(lane, { ...needsOf(graph, catalogs.known(pool)), key: lane })
      fleet.announce()
    },
    knownLanes: (): readonly string[] => lanes.lanes(),
    maxLanes: lanes.maxLanes,
    /** What the engine that comes nearest to running a graph lacks for it; empty when some engine can run it. */
    findLacks(graph: Graph, pool: string): readonly PlacedLack[] {
      if (!hasLanes) return []
      const all = catalogs.known(pool)
      const needs = needsOf(graph, all)
      if (all.some((each) => meets(each, needs)) || catalogs.isOpen(pool)) return []
      const lacks = all.map((each) => findLacks(graph, each, all))
      const least = lacks.reduce((least, each) => (each.length < least.length ? each : least), lacks[0] ?? [])
      return placeLacks(least, () => weights(pool))
    },
    /** Lanes that no engine can serve with its present catalog. */
    strandedLanes(): readonly string[] {
      if (!hasLanes || catalogs.isOpen()) return []
      const served = new Set(catalogs.known().flatMap((each) => lanes.servedBy(each)))
      return lanes.lanes().filter((lane) => lane !== ANY_LANE && !served.has(lane))
    },
    /** What the nearest engine lacks for the jobs of a lane, in words. */
    explainStranded(lane: string): string {
      const needs = lanes.needsOf(lane)
      if (needs === null) return 'no engine can run this job'
      const all = catalogs.known()
      const classes = needs.classes.filter((classType) => all.every((each) => each.find(classType) === null))
      const names =
        classes.length > 0
          ? classes
          : needs.choices.map(([classType, input, value]) => {
              const { folder } = findWhereabouts({ classType, input, name: value }, [])
              return `${classType}.${input} = ${folder === null ? '' : `${folder}/`}${value}`
            })
      return `no engine has all that this job needs: ${names.slice(0, 20).join(', ')}`
    },
  }
}

function toKnown(catalogs: readonly (NodeCatalog | null)[]): readonly NodeCatalog[] {
  return [...new Set(catalogs)].filter((catalog) => catalog !== null)
}

function isEqual(one: readonly NodeCatalog[], other: readonly NodeCatalog[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index])
}
