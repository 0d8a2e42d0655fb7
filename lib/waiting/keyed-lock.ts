/** One piece of work at a time per key, in the order of asking. Keys that nobody holds take no memory. */
export interface KeyedLock {
  /** A failure is the caller's own: whoever waits behind it comes next all the same. */
  run<Result>(key: string, action: () => Promise<Result>): Promise<Result>
  /** Resolves when everything asked for so far under this key is over. */
  settled(key: string): Promise<void>
  /** The keys that are held at present. */
  held(): readonly string[]
}

export function createKeyedLock(): KeyedLock {
  const tails = new Map<string, Promise<void>>()
  return {
    async run(key, action) {
      const before = tails.get(key)
      const { promise: tail, resolve: release } = Promise.withResolvers<void>()
      tails.set(key, tail)
      try {
        if (before) await before
        return await action()
      } finally {
        if (tails.get(key) === tail) tails.delete(key)
        release()
      }
    },
    async settled(key) {
      await tails.get(key)
    },
    held: () => [...tails.keys()],
  }
}
