/** Bounds how much work runs at a time. Work that finds no room waits in the order of arrival. */
export interface Semaphore {
  /** Runs the work as soon as there is room for it. */
  run<T>(work: () => Promise<T>): Promise<T>
  /**
   * For work whose end is not the end of one function. Resolves to the function that gives the room back (once; more often
   * is harmless). Rejects with the signal's reason, and then nothing was taken.
   */
  take(signal?: AbortSignal): Promise<GiveBack>
  /** Takes room without waiting, beyond the width if there is none left: `run` and `take` wait until it is given back. */
  takeAnyway(): GiveBack
  readonly taken: number
  readonly free: number
  readonly waiting: number
}

type GiveBack = () => void

export function createSemaphore(width: number): Semaphore {
  let taken = 0
  const line = new Set<() => void>()

  function takeAnyway(): GiveBack {
    taken++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      taken--
      const [next] = line
      if (taken < width) next?.()
    }
  }

  function waitInLine(signal?: AbortSignal): Promise<GiveBack> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        line.delete(enter)
        reject(signal?.reason)
      }
      const enter = () => {
        line.delete(enter)
        signal?.removeEventListener('abort', leave)
        resolve(takeAnyway())
      }
      line.add(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  return {
    async run(work) {
      const giveBack = taken < width ? takeAnyway() : await waitInLine()
      try {
        return await work()
      } finally {
        giveBack()
      }
    },
    async take(signal) {
      signal?.throwIfAborted()
      return taken < width ? takeAnyway() : waitInLine(signal)
    },
    takeAnyway,
    get taken() {
      return taken
    },
    get free() {
      return Math.max(0, width - taken)
    },
    get waiting() {
      return line.size
    },
  }
}

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
