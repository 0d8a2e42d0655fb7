/**
 * The lists that this process keeps in memory, followed in a store that other processes write to as well. Where nobody else can
 * write, nothing is polled and nobody is told.
 */
import type { Log } from '../../lib/log.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import {
  type DirectoryFollower,
  type FollowedDirectory,
  followDirectories,
  type StoredDirectory,
} from '../domain/events/follow-directories.ts'
import { createHousekeeping } from '../domain/jobs/sweeps/housekeeping.ts'
import type { Store } from '../domain/store.ts'

interface DirectoriesParts {
  readonly store: Pick<Store, 'isExclusive' | 'directoryVersions'>
  readonly bus: Pick<EventBus<never>, 'onDirectory' | 'onGap' | 'publishDirectory'>
  readonly log: Log
}

export interface Directories extends AsyncDisposable {
  /** To be called after a list was changed by this process. */
  announce(directory: StoredDirectory): Promise<void>
  /** From now on these lists are kept up to date. Called once, before anything is served. */
  follow(lists: Readonly<Partial<Record<StoredDirectory, FollowedDirectory>>>): void
}

// A change elsewhere holds here within two seconds, even when its notice is lost: at most a tenth is added as jitter, and the
// read itself takes a moment.
const LOOK_MS = 1600

export function createDirectories({ store, bus, log }: DirectoriesParts): Directories {
  let follower: DirectoryFollower | null = null
  const looking = createHousekeeping({
    tasks: [{ name: 'follow-directories', runs: 'each', everyMs: LOOK_MS, run: async () => follower?.look() }],
    log,
  })
  return {
    announce: async (directory) => follower?.announce(directory),
    follow(lists) {
      if (store.isExclusive || Object.keys(lists).length === 0) return
      follower = followDirectories({ bus, readVersions: () => store.directoryVersions(), lists, log })
      looking.start()
    },
    async [Symbol.asyncDispose]() {
      follower?.[Symbol.dispose]()
      await looking[Symbol.asyncDispose]()
    },
  }
}
