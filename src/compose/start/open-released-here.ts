/** Deployments on releases in this process: with engines of their own where it runs engines. */
import { join } from 'node:path'
import type { Equip } from '../../adapters/engines/comfyui/comfy-bounds.ts'
import { readChildEnvironment } from '../../config/child-environment.ts'
import type { Config } from '../../config/config.ts'
import { UNCONTESTED } from '../../domain/service-nodes/leadership.ts'
import type { OpenedBus } from '../bus/open-bus.ts'
import { CopyProcesses } from '../engines/copy-engines.ts'
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
  readonly overrides: FleetOverrides
  readonly partner?: { readonly equip: Equip }
}

const LEADER = 'release-engines'

export async function openReleasedHere(config: Config, parts: HereParts): Promise<OpenedReleased> {
  const { base, callers, engines, running, bus, releases } = parts
  const startsEngines = releases !== NO_RELEASES && PARTS_OF[config.role].engines
  return openReleased({
    ...{ ...base, releases, bus, deployments: callers.deployments, fleet: engines.fleet },
    engines: startsEngines ? await openCopyEngines(config, parts) : null,
    workers: running.pools?.workers ?? null,
    leadership: startsEngines ? base.node.contend(LEADER) : UNCONTESTED,
    idleMs: config.fleet.copies.idleMs,
    drainMs: config.jobs.drainTimeoutMs,
  })
}

async function openCopyEngines(config: Config, { base, engines, releases, overrides, partner }: HereParts) {
  const { store, node, tracer, clock, log } = base
  const { fleet } = config
  return new CopyProcesses({
    ...{ fleet: engines.fleet, clock, log, findRelease: releases.find, bring: releases.bring, room: fleet.copies.room },
    recall: async (id) => (await recallEngines(store.engines, [{ id }])).get(id) ?? null,
    // Another user cannot enter the data folder, but owns much of the builder's.
    folder:
      config.builder === null || config.builder.user === null
        ? join(config.dataDirectory, 'release-engines')
        : join(config.builder.directory, 'engines'),
    toEngineId: (name) => toEngineId(name, node),
    env: readChildEnvironment(overrides.environment),
    bounds: {
      unreachableMs: fleet.lostAfterMs,
      stallMs: fleet.stallAfterMs,
      idleMs: fleet.idleAfterMs,
      queueStillMs: fleet.queueAfterMs,
    },
    owner: { ownerId: await readServiceId(store), instanceId: node.heartbeat.nodeId },
    ...(partner !== undefined && { equip: partner.equip }),
    ...(tracer !== undefined && { tracer }),
  })
}
