/**
 * Asks the engines what they can run, before somebody is told that a class or a file is missing: it may have been put on a server a
 * moment ago. However many ask, the engines are asked once, and at most every few seconds. Engines of other processes are asked by
 * those, which hear of it on the bus; what they find is read from the registry.
 */
import type { Log } from '../../../../lib/log.ts'
import { settlesWithin, sleep } from '../../../../lib/waiting/sleep.ts'
import { uptimeMs } from '../../../../lib/waiting/uptime.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { OtherEngine } from './followed-engines.ts'

interface ListRefreshDeps {
  readonly fleet: Pick<Fleet, 'refreshLists'>
  /** Engines that other processes drive; null: there are no other processes. */
  readonly others: { list(): readonly OtherEngine[]; refresh(): Promise<void> } | null
  readonly bus: Pick<EventBus<never>, 'publishDirectory' | 'onDirectory'> | null
  readonly clock: { now(): Date }
  readonly log: Log
}

interface ListRefresh extends Disposable {
  /** Never rejects, and settles within a bounded time. */
  refresh(): Promise<void>
}

/** Lists that are no older are not asked for again. */
const FRESH_MS = 3000
/** A server with many custom nodes takes seconds to describe them. */
const WITHIN_MS = 5000
/** For other processes to hear of it, to ask their engines, and to publish what they found. */
const OTHERS_WITHIN_MS = 3000
const LOOK_MS = 200

export function createListRefresh({ fleet, others, bus, clock, log }: ListRefreshDeps): ListRefresh {
  let asking: Promise<void> | null = null
  let askedAtMs = Number.NEGATIVE_INFINITY
  let isTelling = false

  async function ask(): Promise<void> {
    await Promise.all([settlesWithin(fleet.refreshLists(), WITHIN_MS), askOthers()])
    askedAtMs = uptimeMs()
    asking = null
  }

  /** Until one of them can run something else than before, or the time is over: nobody says that nothing has changed. */
  async function askOthers(): Promise<void> {
    if (others === null || bus === null) return
    const catalogsOf = () => others.list().map(({ catalog }) => catalog)
    const before = catalogsOf()
    if (!others.list().some(({ status }) => status.state === 'ready')) return
    isTelling = true
    bus.publishDirectory({ directory: 'engine-lists', version: clock.now().getTime() })
    isTelling = false
    const untilMs = uptimeMs() + OTHERS_WITHIN_MS
    while (uptimeMs() < untilMs && catalogsOf().every((catalog, index) => catalog === before[index])) {
      await sleep(LOOK_MS)
      await others.refresh().catch((error) => log.debug({ err: error }, 'the engines could not be read'))
    }
  }

  // Those who asked here are asked already.
  const stop = bus?.onDirectory(({ directory }) => {
    if (directory === 'engine-lists' && !isTelling) void fleet.refreshLists()
  })

  return {
    async refresh() {
      if (asking === null && uptimeMs() - askedAtMs < FRESH_MS) return
      asking ??= ask()
      await asking
    },
    [Symbol.dispose]: () => stop?.(),
  }
}
