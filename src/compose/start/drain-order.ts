/** The order in which a process ends its work: it says so, stops taking work, finishes what runs, and closes its streams. */
import type { Clock } from '../../../lib/clock.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import type { Config } from '../../config/config.ts'
import type { ServiceNodeParts } from '../process/open-service-node.ts'
import type { Readiness } from '../readiness.ts'
import { PARTS_OF } from '../roles.ts'
import type { Router } from '../router/open-router.ts'
import type { OpenedJobs } from './open-jobs.ts'

interface DrainParts {
  readonly readiness: Pick<Readiness, 'drain'>
  readonly node: Pick<ServiceNodeParts, 'drain'>
  readonly running: OpenedJobs
  readonly router: Pick<Router, 'drain'>
  readonly http: { close(): Promise<void> }
  readonly clock: Clock
}

export async function drainInOrder(config: Config, parts: DrainParts): Promise<void> {
  const { readiness, node, running, router, http, clock } = parts
  const { drainDelayMs, drainTimeoutMs } = config.jobs
  readiness.drain()
  node.drain()
  // Proxies go on sending requests until they have seen that this process is not ready any more.
  await sleep(drainDelayMs)
  const deadline = new Date(clock.now().getTime() + drainTimeoutMs)
  // If nothing runs here that a client could be waiting for, streams end at once so that clients reconnect elsewhere.
  const closed = PARTS_OF[config.role].engines ? null : http.close()
  await Promise.all([
    running.jobs.worker.drain({ deadline }),
    running.pools?.drain({ deadline }),
    router.drain(drainTimeoutMs),
  ])
  await (closed ?? http.close())
}
