/** Deployments on releases in this process: with engines of their own where it runs engines. */
import { join } from 'node:path'
import type { Equip } from '../../adapters/engines/comfyui/comfy-bounds.ts'
import { readChildEnvironment } from '../../config/child-environment.ts'
import type { Config } from '../../config/config.ts'
import type { CopyEngines } from '../../domain/deployments/released/copy-engines.ts'
import { SharedCopies } from '../../domain/deployments/released/shared-copies.ts'
import { UNCONTESTED } from '../../domain/service-nodes/leadership.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import { CopyProcesses, toCopyBounds } from '../engines/copy-engines.ts'
import { type JoinedMachines, openMachinePlans } from '../engines/joined-machines.ts'
import { type OpenedDirectory, recallEngines } from '../engines/open-directory.ts'
import { type FleetOverrides, toEngineId } from '../engines/open-engines.ts'
import { NO_RELEASES, type OpenedReleased, openReleased, type ReleasesHere } from '../engines/open-released.ts'
import { readServiceId } from '../engines/service-id.ts'
import { PARTS_OF } from '../roles.ts'
import type { Base, Callers } from './open-base.ts'
import type { OpenedJobs } from './open-jobs.ts'

interface HereParts {
  readonly base: Base
  readonly callers: Pick<Callers, 'deployments'>
  readonly engines: Pick<OpenedDirectory, 'fleet'>
  readonly running: Pick<OpenedJobs, 'pools'>
  readonly bus: OpenedBus
  readonly releases: ReleasesHere
  readonly machines: JoinedMachines | null
  readonly overrides: FleetOverrides
  readonly partner?: { readonly equip: Equip }
}

const LEADER = 'release-engines'

export async function openReleasedHere(config: Config, parts: HereParts): Promise<OpenedReleased> {
  const { base, callers, engines, running, bus, releases, machines } = parts
  const startsEngines = releases !== NO_RELEASES && PARTS_OF[config.role].engines
  return openReleased({
    ...{ ...base, releases, bus, machines, deployments: callers.deployments, fleet: engines.fleet },
    engines: startsEngines ? await openAllCopies(config, parts) : null,
    workers: running.pools?.workers ?? null,
    leadership: startsEngines ? base.node.contend(LEADER) : UNCONTESTED,
    idleMs: config.fleet.copies.idleMs,
    drainMs: config.jobs.drainTimeoutMs,
  })
}

/** Those of this process and, where machines may join, of those. */
async function openAllCopies(config: Config, parts: HereParts): Promise<CopyEngines & AsyncDisposable> {
  const { base, machines, releases } = parts
  const own = await openCopyEngines(config, parts)
  if (machines === null) return own
  const { store, clock } = base
  const plans = openMachinePlans(store)
  const shared = new SharedCopies({ own, targets: releases.targets, machines: machines.list, plans, clock })
  return Object.assign(shared, { [Symbol.asyncDispose]: () => own[Symbol.asyncDispose]() })
}

async function openCopyEngines(config: Config, { base, engines, releases, overrides, partner }: HereParts) {
  const { store, node, tracer, clock, log } = base
  const { fleet } = config
  return new CopyProcesses({
    ...{ fleet: engines.fleet, clock, log, findRelease: releases.find, bring: releases.bring },
    // Without a builder all of it is on machines that joined.
    room: releases.targets.length === 0 ? 0 : fleet.copies.room,
    recall: async (id) => (await recallEngines(store.engines, [{ id }])).get(id) ?? null,
    // Another user cannot enter the data folder, but owns much of the builder's.
    folder:
      config.builder === null || config.builder.user === null
        ? join(config.dataDirectory, 'release-engines')
        : join(config.builder.directory, 'engines'),
    toEngineId: (name) => toEngineId(name, node),
    env: readChildEnvironment(overrides.environment),
    bounds: toCopyBounds(fleet),
    owner: { ownerId: await readServiceId(store), instanceId: node.heartbeat.nodeId },
    ...(partner !== undefined && { equip: partner.equip }),
    ...(tracer !== undefined && { tracer }),
  })
}
