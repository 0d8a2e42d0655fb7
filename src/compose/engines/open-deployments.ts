/** Named deployments: their addresses, their workers, and the hook that is called when workers are needed or idle. */

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createCommandHook, createWebhook } from '../../adapters/hooks/pool-event-hooks.ts'
import type { DeploymentsConfig } from '../../config/config.ts'
import { DEFAULT_POOL } from '../../domain/deployments/deployment.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import { createLifecycle } from '../../domain/deployments/lifecycle.ts'
import { type CallHook, createPoolHooks } from '../../domain/deployments/pool-hooks.ts'
import type { EventBus } from '../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../domain/events/live-event.ts'
import { type Chore, createHousekeeping } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { Store } from '../../domain/store.ts'
import type { JobActions } from '../job-actions.ts'
import { createLocalPoolWorkers, type LocalPoolWorkers } from './deployment-workers.ts'

interface DeploymentParts {
  readonly deployments: Deployments
  readonly store: Pick<Store, 'deployments'>
  readonly jobs: Pick<JobActions, 'createPoolWorker' | 'worker'>
  readonly bus: EventBus<LiveEvent>
  readonly drainTimeoutMs: number
  readonly clock: Clock
  readonly log: Log
}

export interface RunningPools extends AsyncDisposable {
  readonly workers: LocalPoolWorkers
  /** Starts the lifecycle of the pools. Harmless when called twice. */
  start(): void
  drain(options: { readonly deadline: Date }): Promise<void>
}

const LOOK_MS = 1000

export function openPools(config: DeploymentsConfig, parts: DeploymentParts): RunningPools {
  const { deployments, store, jobs, bus, drainTimeoutMs, clock, log } = parts
  const workers = createLocalPoolWorkers({ createPoolWorker: jobs.createPoolWorker, commonWorker: jobs.worker })
  const hooks = config.hook === null ? null : createPoolHooks({ call: toCall(config.hook), clock, log })
  const lifecycle = createLifecycle({
    deployments,
    store: store.deployments,
    workers,
    hooks,
    clock,
    log,
    idleAfterMs: config.idleAfterMs,
    drainTimeoutMs,
  })
  const look: Chore = { name: 'look-after-pools', everyMs: LOOK_MS, run: () => lifecycle.look() }
  const looking = createHousekeeping({ tasks: [look], log })
  const underway = new Set<Promise<void>>()
  let isEnding = false
  const inBackground = (act: () => Promise<void>) => {
    if (isEnding) return
    const done = act()
      .catch((error) => log.error({ err: error }, 'the lifecycle of the deployments failed'))
      .finally(() => underway.delete(done))
    underway.add(done)
  }
  const stopListening = bus.onWork((pool) => {
    if (pool !== undefined && pool !== DEFAULT_POOL) inBackground(() => lifecycle.wake(pool))
  })
  return {
    workers,
    start() {
      looking.start()
      deployments.onChange(({ state }) => {
        // An operator's change is acted on at once; a change by the lifecycle itself needs no further run.
        if (state !== 'ready') inBackground(() => lifecycle.look())
      })
      inBackground(() => lifecycle.look())
    },
    drain: (options) => workers.drain(options),
    async [Symbol.asyncDispose]() {
      isEnding = true
      stopListening()
      await Promise.all(underway)
      await looking[Symbol.asyncDispose]()
      await hooks?.[Symbol.asyncDispose]()
      await workers.drain({ deadline: clock.now() })
    },
  }
}

function toCall(hook: NonNullable<DeploymentsConfig['hook']>): CallHook {
  return hook.kind === 'webhook' ? createWebhook(hook.url) : createCommandHook(hook.path)
}
