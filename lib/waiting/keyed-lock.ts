/** Runs one piece of work at a time per key, in the order of the calls. Keys that are not held take no memory. */
export interface KeyedLock {
  /** Rejects as the work does. A failure does not stop the work that waits behind it. */
  run<Result>(key: string, action: () => Promise<Result>): Promise<Result>
  /** Resolves when all work that was started so far under this key is over. */
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
