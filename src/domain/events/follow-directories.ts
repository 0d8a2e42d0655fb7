/**
 * Keeps the lists that every process has in memory (accounts, keys, deployments) equal to those in a store that several
 * processes write to. A notice of a newer version refreshes a list at once; `look`, called again and again, compares all
 * versions in one small read and so makes up for every notice that was lost. Whoever changes a list announces it.
 */
import type { Log } from '../../../lib/log.ts'
import type { Directory, EventBus } from './event-bus.ts'

/** The newest version of each list in the store. */
export type DirectoryVersions = Readonly<Record<StoredDirectory, number>>

/** The lists whose versions the store counts. */
export type StoredDirectory = Extract<Directory, 'accounts' | 'keys' | 'deployments'>

/** A list in memory. */
export interface FollowedDirectory {
  /** What the copy has seen. */
  readonly version: number
  refresh(): Promise<void>
}

export interface DirectoryFollower extends Disposable {
  /** One comparison with the store; rejects when the store cannot be read. */
  look(): Promise<void>
  /** This process has changed the list: the others are told. Never rejects. */
  announce(directory: StoredDirectory): Promise<void>
}

interface FollowerDeps {
  readonly bus: Pick<EventBus<never>, 'onDirectory' | 'onGap' | 'publishDirectory'>
  readonly readVersions: () => Promise<DirectoryVersions>
  readonly lists: Readonly<Partial<Record<StoredDirectory, FollowedDirectory>>>
  readonly log: Log
}

export function followDirectories({ bus, readVersions, lists, log }: FollowerDeps): DirectoryFollower {
  const followed = Object.entries(lists) as [StoredDirectory, FollowedDirectory][]

  async function look(): Promise<void> {
    const versions = await readVersions()
    await Promise.all(followed.map(([name, list]) => (versions[name] > list.version ? list.refresh() : undefined)))
  }

  function inBackground(refresh: () => Promise<void>): void {
    refresh().catch((error) => log.warn({ err: error }, 'a list could not be refreshed; the next look tries again'))
  }

  const stops = [
    bus.onDirectory(({ directory, version }) => {
      const list = followed.find(([name]) => name === directory)?.[1]
      if (list !== undefined && version > list.version) inBackground(() => list.refresh())
    }),
    bus.onGap(() => inBackground(look)),
  ]

  return {
    look,
    async announce(directory) {
      try {
        const list = lists[directory]
        await list?.refresh()
        if (list !== undefined) bus.publishDirectory({ directory, version: list.version })
      } catch (error) {
        log.warn({ err: error, directory }, 'a change was not announced; other processes find it at their next look')
      }
    },
    [Symbol.dispose]() {
      for (const stop of stops) stop()
    },
  }
}
