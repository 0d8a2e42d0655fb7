/**
 * The lists that this process keeps in memory, followed in a store that other processes write to as well. Where nobody else can
 * write, nothing is polled and no change is announced. The read that compares their versions also shows what else has not changed.
 */

import { uptimeMs } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import {
  type DirectoryFollower,
  type FollowedDirectory,
  followDirectories,
  type StoredDirectory,
} from '../domain/events/follow-directories.ts'
import { createHousekeeping } from '../domain/jobs/sweeps/housekeeping.ts'
import type { Store, StoreGlance } from '../domain/store.ts'

interface DirectoriesParts {
  readonly store: Pick<Store, 'isExclusive' | 'glance'>
  readonly bus: Pick<EventBus<never>, 'onDirectory' | 'onGap' | 'publishDirectory'>
  readonly log: Log
}

export interface Directories extends AsyncDisposable {
  /** To be called after a list was changed by this process. */
  announce(directory: StoredDirectory): Promise<void>
  /** From now on these lists are kept up to date. Called once, before anything is served. */
  follow(lists: Readonly<Partial<Record<StoredDirectory, FollowedDirectory>>>): void
  /** The newest reading of the store; null: there is none that is recent enough. */
  latest(): StoreGlance | null
}

// A change elsewhere holds here within two seconds, even when its notice is lost: at most a tenth is added as jitter, and the
// read itself takes a moment.
const LOOK_MS = 1600
// Two intervals: after a failed reading, its users read the store themselves.
const LATELY_MS = 2 * LOOK_MS

export function createDirectories({ store, bus, log }: DirectoriesParts): Directories {
  let follower: DirectoryFollower | null = null
  let seen: { readonly glance: StoreGlance; readonly atMs: number } | null = null

  async function readVersions() {
    const atMs = uptimeMs()
    const glance = await store.glance()
    seen = { glance, atMs }
    return glance.versions
  }

  const looking = createHousekeeping({
    tasks: [{ name: 'follow-directories', runs: 'each', everyMs: LOOK_MS, run: async () => follower?.look() }],
    log,
  })
  return {
    announce: async (directory) => follower?.announce(directory),
    follow(lists) {
      if (store.isExclusive || Object.keys(lists).length === 0) return
      follower = followDirectories({ bus, readVersions, lists, log })
      looking.start()
    },
    latest: () => (seen !== null && uptimeMs() - seen.atMs <= LATELY_MS ? seen.glance : null),
    async [Symbol.asyncDispose]() {
      follower?.[Symbol.dispose]()
      await looking[Symbol.asyncDispose]()
    },
  }
}
