/** Opens the engines that the configuration names. */

import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Tracer } from '../../../lib/tracing/tracer.ts'
import type { ComfyServer, Equip } from '../../adapters/engines/comfyui/comfy-bounds.ts'
import { type ComfyEngine, openComfyEngine } from '../../adapters/engines/comfyui/comfy-engine.ts'
import { endLeftGroups } from '../../adapters/engines/comfyui/launch/launched-groups.ts'
import { openEmbeddedEngine } from '../../adapters/engines/embedded/engine.ts'
import type { FleetConfig } from '../../config/blocks/fleet-config.ts'
import { readChildEnvironment, readThreadEnvironment } from '../../config/child-environment.ts'
import type { Config } from '../../config/config.ts'
import type { Engine } from '../../domain/engine/engine-port.ts'
import { type EngineLeases, type FleetEngine, toResidentEngine } from '../../domain/engine/fleet/fleet-engine.ts'
import type { RunModel } from '../../domain/engine/model-port.ts'
import type { WarmPlans } from '../../domain/engine/warm/warm-plans.ts'
import type { HeldRun } from '../../domain/jobs/job-store.ts'
import { isSteady } from '../../domain/service-nodes/heartbeat.ts'
import type { Store, StoreGlance } from '../../domain/store.ts'
import type { WorkerKeys } from '../../domain/workers/worker-keys.ts'
import type { ServiceNodeParts } from '../process/service-node.ts'
import { PARTS_OF } from '../roles.ts'
import { claimEngines, type OpenedDirectory } from './open-directory.ts'
import type { ReleasesHere } from './open-released.ts'
import { readServiceId } from './service-id.ts'

interface FleetParts {
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly clock: Clock
  readonly log: Log
  readonly store: Pick<Store, 'ensureMeta' | 'engines' | 'nodes' | 'jobs'>
  readonly node: ServiceNodeParts
  /** Whether workers of other machines may join; left out: they may not. */
  readonly takesWorkers?: boolean
  /** Whether accounts may deploy releases; left out: they may not. */
  readonly hasCopies?: boolean
  /** Of those workers. */
  readonly workerKeys: Pick<WorkerKeys, 'find'>
  /** What the store showed a moment ago; null: it was not looked at. */
  readonly glance: () => StoreGlance | null
  /** Runs a partner's model for a node. */
  readonly runModel: RunModel
  /** What engines that are started here get for their partner nodes; left out: nothing. */
  readonly partner?: PartnerAccess
  /** What engines have to have loaded before they count as ready; left out: nothing. */
  readonly warm?: WarmPlans
  readonly overrides: FleetOverrides
}

export interface FleetOverrides {
  /** Releases that deployments may be made of; left out: there are none. */
  readonly releases?: ReleasesHere
  /** Used instead of the built-in engine; its maker closes it. */
  readonly engine?: Engine
  /** Used instead of all engines that the configuration names. */
  readonly engines?: readonly FleetEngine[]
  /** For tests: another first time in quarantine. */
  readonly quarantineMs?: number
  /** Instead of this process's own: the variables of which engines and their programs get a part. */
  readonly environment?: NodeJS.ProcessEnv
}

/** How the partner nodes of an engine reach this service. */
interface PartnerAccess {
  /** A promise: where this process listens is known only when it does, and engines are started then. */
  readonly apiBase: string | Promise<string>
  readonly equip: Equip
}

interface OpenedEngines {
  readonly opened: OpenedDirectory
  /** The engine in this process, if there is one. */
  readonly resident: Engine | null
  /** Resolves when those that could not be started before this process listens have said what they can run, or after a bounded time. */
  untilLateHeard(): Promise<void>
}

const NONE_LATE = async () => {}

export async function openEngines(config: Config, parts: FleetParts): Promise<OpenedEngines> {
  const { overrides } = parts
  const claims = claimEngines({ ...parts, recycleLimits: config.fleet.recycle, quarantineMs: overrides.quarantineMs })
  if (!PARTS_OF[config.role].engines)
    return { opened: await claims.open([]), resident: null, untilLateHeard: NONE_LATE }
  if (overrides.engines !== undefined) {
    return { opened: await claims.open(overrides.engines), resident: null, untilLateHeard: NONE_LATE }
  }
  const ownerId = await readServiceId(parts.store)
  await using listed = await openEngineList(config, {
    ...{ ...parts, ownerId, leases: claims.leases },
    findRuns: () => parts.store.jobs.findRuns({}),
  })
  const opened = await claims.open(listed.engines)
  const areLate = typeof parts.partner?.apiBase === 'object' && config.fleet.launches.length > 0
  if (!areLate) await listed.untilHeard()
  listed.keep()
  return { opened, resident: listed.resident, untilLateHeard: areLate ? listed.untilHeard : NONE_LATE }
}

interface EngineList extends AsyncDisposable {
  readonly engines: readonly FleetEngine[]
  /** The engine in this process, if there is one. */
  readonly resident: Engine | null
  /** Resolves when they have said what they can run, or after the time that a start waits for that. */
  untilHeard(): Promise<void>
  /** Somebody else closes the engines. */
  keep(): void
}

type ListParts = Pick<FleetParts, 'clock' | 'log' | 'tracer' | 'overrides' | 'runModel' | 'partner'> &
  Pick<ComfyParts, 'node' | 'ownerId' | 'leases' | 'findRuns'>

/** Every engine that the configuration names, whoever may give it work. */
export async function openEngineList(config: Config, parts: ListParts): Promise<EngineList> {
  await using opening = new AsyncDisposableStack()
  const rememberIn = join(config.dataDirectory, 'launched')
  const left = endLeftGroups(rememberIn)
  if (left.length > 0) parts.log.warn({ processes: left }, 'servers that outlived their service were ended')
  const comfy = await openComfyEngines(config.fleet, { ...parts, opening, rememberIn })
  const resident = config.fleet.hasEmbedded ? await openResident(config, parts) : null
  const opened = opening.move()
  let isKept = false
  return {
    engines: [...comfy, ...(resident === null ? [] : [resident.member])],
    resident: resident?.engine ?? null,
    untilHeard: () => untilHeard(comfy, config.fleet.waitMs),
    keep() {
      isKept = true
    },
    async [Symbol.asyncDispose]() {
      if (!isKept) await opened.disposeAsync()
    },
  }
}

/**
 * The id of an engine, by which all processes know it. Alone, an engine is named as an operator would name it; beside others, one
 * that belongs to this process also bears its name, and an address that means this machine the name of the machine.
 */
export function toEngineId(name: string, { heartbeat }: Pick<ServiceNodeParts, 'heartbeat'>): string {
  return heartbeat.isAlone ? name : `${name}-${heartbeat.nodeId.slice(0, 8)}`
}

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])(:|\/|$)/

/** The address without its scheme, as an operator would name the server. */
function toRemoteId(url: string, { heartbeat }: Pick<ServiceNodeParts, 'heartbeat'>): string {
  const address = url.replace(/^https?:\/\//, '')
  return !heartbeat.isAlone && LOOPBACK.test(address) ? `${hostname()}/${address}` : address
}

interface Resident {
  readonly engine: Engine
  readonly member: FleetEngine
}

async function openResident(config: Config, parts: ListParts): Promise<Resident> {
  const { overrides } = parts
  const engine = overrides.engine ?? (await openEmbedded(config, parts))
  const { urls, launches, concurrency } = config.fleet
  const others = (urls.length + launches.length) * concurrency
  const member = toResidentEngine(engine, {
    id: toEngineId('embedded', parts.node),
    concurrency: Math.max(1, config.jobs.workers - others),
    isBorrowed: overrides.engine !== undefined,
  })
  return { engine, member }
}

/** The share of the memory that one job may use where several accounts share the service, so that no account takes all of it. */
const SHARE_OF_JOB = 0.5

function openEmbedded(
  { kind, engine: config }: Config,
  { clock, log, tracer, runModel, overrides }: ListParts,
): Promise<Engine> {
  return openEmbeddedEngine({
    threads: config.threads,
    memoryLimitBytes: config.memoryBytes,
    runMemoryBytes: config.memoryBytes * (kind === 'local' ? 1 : SHARE_OF_JOB),
    nodeTimeoutMs: config.nodeTimeoutMs,
    environment: readThreadEnvironment(overrides.environment),
    maxImagePixels: config.maxImagePixels,
    customNodes: { folders: config.nodeFolders, timeoutMs: config.nodeTimeoutMs },
    runModel,
    tracer,
    clock,
    log,
  })
}

interface ComfyParts extends Pick<FleetParts, 'clock' | 'log' | 'tracer' | 'overrides' | 'partner'> {
  readonly node: Pick<ServiceNodeParts, 'heartbeat'>
  readonly opening: AsyncDisposableStack
  /** The folder in which launched processes are remembered. */
  readonly rememberIn: string
  readonly ownerId: string
  /** The runs of the service that have not ended; left out: they end with the process that follows them. */
  readonly findRuns?: () => Promise<readonly HeldRun[]>
  readonly leases: EngineLeases
}

async function openComfyEngines(config: FleetConfig, parts: ComfyParts): Promise<ComfyEngine[]> {
  const { clock, log, tracer, node, opening, ownerId, leases, findRuns } = parts
  const { heartbeat } = node
  const env = readChildEnvironment(parts.overrides.environment)
  const servers: { readonly id: string; readonly server: ComfyServer }[] = [
    ...config.urls.map((url) => ({
      id: toRemoteId(url, node),
      server: { kind: 'remote', url: new URL(url) } as const,
    })),
    ...config.launches.map((command, index) => ({
      id: toEngineId(`launched-${index + 1}`, node),
      server: {
        kind: 'supervised',
        ...withApiBase(command, parts.partner),
        env,
        rememberIn: parts.rememberIn,
      } as const,
    })),
  ]
  const findLive = async () => new Set((await heartbeat.findLive()).map(({ id }) => id))
  const engines: ComfyEngine[] = []
  for (const { id, server } of servers) {
    const engine = await openComfyEngine({
      id,
      server,
      ownerId,
      instanceId: heartbeat.nodeId,
      ...(server.kind === 'remote' &&
        findRuns !== undefined && {
          findRuns: async () => (await findRuns()).filter(({ engineId }) => engineId === id),
        }),
      ...(!heartbeat.isAlone && {
        siblings: { findLive, mayEndOrphans: () => leases.isHeld(id) && isSteady(heartbeat) },
      }),
      concurrency: config.concurrency,
      ...(server.kind === 'supervised' && parts.partner !== undefined && { equip: parts.partner.equip }),
      tracer,
      clock,
      log,
      bounds: {
        unreachableMs: config.lostAfterMs,
        stallMs: config.stallAfterMs,
        idleMs: config.idleAfterMs,
        queueStillMs: config.queueAfterMs,
      },
    })
    engines.push(opening.use(engine))
  }
  return engines
}

const API_BASE = '--comfy-api-base'

/** A command that says itself where its partner nodes go is left as it is. */
function withApiBase(command: string, partner: PartnerAccess | undefined) {
  if (partner === undefined || command.includes(API_BASE)) return { command }
  const { apiBase } = partner
  if (typeof apiBase === 'string') return { command: `${command} ${API_BASE} ${apiBase}` }
  return { command, furtherWords: apiBase.then((base) => [API_BASE, base]) }
}

/** Learns what the engines can run, so that the first submits can be validated. The wait for engines that do not answer is bounded. */
async function untilHeard(engines: readonly ComfyEngine[], waitMs: number): Promise<void> {
  if (engines.length === 0 || waitMs === 0) return
  const over = AbortSignal.timeout(waitMs)
  await Promise.all(engines.map((engine) => engine.untilReady(over)))
}
