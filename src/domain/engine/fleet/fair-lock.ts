/**
 * One piece of work at a time for several who ask again and again: the next turn goes to whoever has waited longest since a turn
 * came to something. Everybody who was woken for the same reason is heard before the choice is made, so that the first to be woken
 * is not always the first to be served.
 */
export interface FairTurns {
  /** `work` tells whether the turn came to something. `asker` stands for whoever asks, over all turns. */
  take(asker: object, work: () => Promise<boolean>): Promise<boolean>
}

interface Waiting {
  readonly asker: object
  go(): void
}

export function createFairTurns(): FairTurns {
  const waiting: Waiting[] = []
  /** By the number of the latest turn that came to something. */
  const served = new WeakMap<object, number>()
  let turns = 0
  let isBusy = false
  /** One who asks alone has nobody to wait for. */
  let only: object | null = null
  let isShared = false

  function soon(): void {
    if (isShared) setImmediate(next)
    else next()
  }

  function next(): void {
    if (waiting.length === 0) {
      isBusy = false
      return
    }
    const orderOf = ({ asker }: Waiting) => served.get(asker) ?? 0
    const longest = waiting.reduce((one, other) => (orderOf(other) < orderOf(one) ? other : one))
    waiting.splice(waiting.indexOf(longest), 1)
    longest.go()
  }

  return {
    async take(asker, work) {
      only ??= asker
      isShared ||= asker !== only
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ asker, go: resolve })
      if (!isBusy) {
        isBusy = true
        soon()
      }
      await promise
      try {
        const isServed = await work()
        if (isServed) served.set(asker, ++turns)
        return isServed
      } finally {
        soon()
      }
    },
  }
}
