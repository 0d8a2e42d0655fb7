/**
 * Limits on what is open at a time that hold over all processes of a service: connections of an account, calls of a provider. Each process
 * says with its beats how much it has open; what a dead process said is forgotten with it. Whoever opens one more says so first and reads what the
 * others said afterwards, so that of all who do that the last one sees everybody: together they never open more than the limit. To spare the store
 * that, a process opens its share of a tenth of the limit without a word; so there may be a tenth more than the limit, and no more. At the limit
 * two processes that want the last one at the same moment may both be refused; whoever is refused has taken back what it said before it
 * hears so. One that was closed is free elsewhere with the next beat.
 */
import type { Heartbeat } from './heartbeat.ts'

export interface SharedCounts {
  /** Takes one of so many. At once where nobody has to be asked. False: none is free. */
  take(key: string, limit: number): boolean | Promise<boolean>
  /** Whoever took one gives it back, once. */
  giveBack(key: string): void
  /** Says soon what was given back, for whoever waits for it elsewhere: else the next beat does. */
  tell(): void
  /** How many this process has. */
  count(key: string): number
  /** What the other processes must know of this one. */
  told(): Readonly<Record<string, number>>
}

interface Held {
  open: number
  /** Said to the others, and not open yet. */
  asked: number
  limit: number
}

// A tenth is what may be opened without asking, by all processes together.
const UNASKED_PART = 10

export function createSharedCounts(heartbeat: Pick<Heartbeat, 'isAlone' | 'nodeId' | 'hear'>): SharedCounts {
  const { isAlone, nodeId } = heartbeat
  const held = new Map<string, Held>()
  let others: readonly Readonly<Record<string, number>>[] | null = null
  let asking: Promise<void> | null = null
  let nextAsking: Promise<void> | null = null

  const shareOf = (limit: number) => (others === null ? 0 : Math.floor(limit / (UNASKED_PART * (others.length + 1))))
  const countOthers = (key: string) => others?.reduce((sum, counts) => sum + (counts[key] ?? 0), 0) ?? 0

  async function hear(): Promise<void> {
    const live = await heartbeat.hear()
    others = live.filter(({ id }) => id !== nodeId).map(({ about }) => about.counts ?? {})
  }

  /** A question that begins after this call; all that come while another one is under way share the next. */
  function ask(): Promise<void> {
    nextAsking ??= (asking ?? Promise.resolve()).then(() => {
      nextAsking = null
      // Without the store the latest answer, and the limit of this process, have to do.
      asking = hear().catch(() => {})
      return asking
    })
    return nextAsking
  }

  function of(key: string, limit: number): Held {
    const known = held.get(key) ?? { open: 0, asked: 0, limit }
    known.limit = limit
    held.set(key, known)
    return known
  }

  function forget(key: string, { open, asked }: Held): void {
    if (open + asked === 0) held.delete(key)
  }

  async function takeAsking(key: string, own: Held): Promise<boolean> {
    own.asked++
    await ask()
    own.asked--
    const isFree = own.open + countOthers(key) < own.limit
    if (isFree) own.open++
    forget(key, own)
    // Else the others would count it until the next beat, and refuse what is free.
    if (!isFree) await ask()
    return isFree
  }

  return {
    take(key, limit) {
      const own = of(key, limit)
      const isFull = own.open + own.asked >= limit
      if (!isFull && (isAlone || own.open + own.asked < shareOf(limit))) {
        own.open++
        return true
      }
      forget(key, own)
      return isFull ? false : takeAsking(key, of(key, limit))
    },
    giveBack(key) {
      const own = held.get(key)
      if (own === undefined) return
      own.open--
      forget(key, own)
    },
    tell() {
      if (!isAlone) void ask()
    },
    count: (key) => held.get(key)?.open ?? 0,
    told() {
      const worthTelling = [...held].filter(([, { open, asked, limit }]) => open + asked > shareOf(limit))
      return Object.fromEntries(worthTelling.map(([key, { open, asked }]) => [key, open + asked]))
    },
  }
}

/** For a limit of this process alone. */
export function createOwnCounts(): SharedCounts {
  return createSharedCounts({ isAlone: true, nodeId: '', hear: async () => [] })
}
