/** Opens the engines that the configuration names, as one fleet. */

import type { Clock } from '../../../lib/clock.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { type ComfyEngine, type ComfyServer, openComfyEngine } from '../../adapters/engines/comfyui/comfy-engine.ts'
import { openEmbeddedEngine } from '../../adapters/engines/embedded/engine.ts'
import { readChildEnvironment, readThreadEnvironment } from '../../config/child-environment.ts'
import type { Config } from '../../config/config.ts'
import type { FleetConfig } from '../../config/fleet-config.ts'
import type { Engine } from '../../domain/engine/engine-port.ts'
import { createFleet, type Fleet } from '../../domain/engine/fleet/fleet.ts'
import type { FleetEngine } from '../../domain/engine/fleet/fleet-engine.ts'
import { toResidentEngine } from '../../domain/engine/fleet/resident-engine.ts'
import type { RunModel } from '../../domain/engine/model-port.ts'
import type { MetaStore } from '../../domain/store.ts'
import { createRememberEngine, recallEngines } from './known-catalogs.ts'

const SERVICE_ID_KEY = 'serviceId'

interface FleetParts {
  readonly clock: Clock
  readonly log: Log
  readonly store: MetaStore
  /** Runs a partner's model for a node. */
  readonly runModel: RunModel
  readonly overrides: FleetOverrides
}

export interface FleetOverrides {
  /** Used instead of the built-in engine; its maker closes it. */
  readonly engine?: Engine
  /** Used instead of all engines that the configuration names. */
  readonly engines?: readonly FleetEngine[]
  /** Instead of this process's own: the variables of which engines and their programs get a part. */
  readonly environment?: NodeJS.ProcessEnv
}

interface OpenedFleet {
  readonly fleet: Fleet
  /** The engine in this process, if there is one. */
  readonly resident: Engine | null
}

export async function openFleet(config: Config, parts: FleetParts): Promise<OpenedFleet> {
  const { clock, log, overrides } = parts
  if (overrides.engines !== undefined) return { fleet: await gather(config, overrides.engines, parts), resident: null }
  await using opening = new AsyncDisposableStack()
  // The id of this service on ComfyUI servers that it shares with other services.
  const ownerId = await parts.store.ensureMeta(SERVICE_ID_KEY, newUuidV4)
  const comfy = await openComfyEngines(config.fleet, {
    clock,
    log,
    opening,
    ownerId,
    environment: overrides.environment,
  })
  const resident = config.fleet.hasEmbedded ? await openResident(config, parts) : null
  const fleet = await gather(config, [...comfy, ...(resident === null ? [] : [resident.member])], parts)
  await untilHeard(comfy, config.fleet.waitMs)
  opening.move()
  return { fleet, resident: resident?.engine ?? null }
}

async function gather(
  config: Config,
  engines: readonly FleetEngine[],
  { clock, log, store }: FleetParts,
): Promise<Fleet> {
  // The built-in engine alone runs every job that it accepts: no lanes are needed, and its catalog need not be stored.
  const hasLanes = engines.some(({ isResident }) => !isResident)
  const others = engines.filter(({ isResident }) => !isResident).map(({ id }) => id)
  return createFleet(engines, {
    clock,
    log,
    hasLanes,
    recycleLimits: config.fleet.recycle,
    remembered: await recallEngines(store, others),
    ...(hasLanes && { remember: createRememberEngine(store, log, others) }),
  })
}

interface Resident {
  readonly engine: Engine
  readonly member: FleetEngine
}

async function openResident(config: Config, parts: FleetParts): Promise<Resident> {
  const { overrides } = parts
  const engine = overrides.engine ?? (await openEmbedded(config, parts))
  const { urls, launches, concurrency } = config.fleet
  const others = (urls.length + launches.length) * concurrency
  const member = toResidentEngine(engine, {
    id: 'embedded',
    concurrency: Math.max(1, config.jobs.workers - others),
    isBorrowed: overrides.engine !== undefined,
  })
  return { engine, member }
}

/** The share of the memory that one job may use where several accounts share the service, so that no account takes all of it. */
const SHARE_OF_JOB = 0.5

function openEmbedded(
  { kind, engine: config }: Config,
  { clock, log, runModel, overrides }: FleetParts,
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
    clock,
    log,
  })
}

interface ComfyParts {
  readonly clock: Clock
  readonly log: Log
  readonly opening: AsyncDisposableStack
  readonly ownerId: string
  readonly environment: NodeJS.ProcessEnv | undefined
}

async function openComfyEngines(
  config: FleetConfig,
  { clock, log, opening, ownerId, environment }: ComfyParts,
): Promise<ComfyEngine[]> {
  const env = readChildEnvironment(environment)
  const servers: { readonly id: string; readonly server: ComfyServer }[] = [
    ...config.urls.map((url) => ({ id: toRemoteId(url), server: { kind: 'remote', url: new URL(url) } as const })),
    ...config.launches.map((command, index) => ({
      id: `launched-${index + 1}`,
      server: { kind: 'supervised', command, env } as const,
    })),
  ]
  const instanceId = newUuidV4()
  const engines: ComfyEngine[] = []
  for (const { id, server } of servers) {
    const engine = await openComfyEngine({
      id,
      server,
      ownerId,
      instanceId,
      concurrency: config.concurrency,
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

/** The address without its scheme, as an operator would name the server. */
function toRemoteId(url: string): string {
  return url.replace(/^https?:\/\//, '')
}

/** Learns what the engines can run, so that the first submits can be validated. The wait for engines that do not answer is bounded. */
async function untilHeard(engines: readonly ComfyEngine[], waitMs: number): Promise<void> {
  if (engines.length === 0 || waitMs === 0) return
  const over = AbortSignal.timeout(waitMs)
  await Promise.all(engines.map((engine) => engine.untilReady(over)))
}
