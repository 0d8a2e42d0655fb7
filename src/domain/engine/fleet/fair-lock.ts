/**
 * A lock that is shared fairly: work runs one piece at a time, and among those who wait it goes to the one whose last success
 * is longest ago. The choice is made after everybody who was woken by the same event has asked, so that the first to be woken
 * is not always the first to be served.
 */
interface FairLock {
  /** `work` resolves to whether it succeeded. `asker` identifies the caller and is the same in every call. */
  run(asker: object, work: () => Promise<boolean>): Promise<boolean>
}

interface Waiting {
  readonly asker: object
  go(): void
}

export function createFairLock(): FairLock {
  const waiting: Waiting[] = []
  /** The number of each asker's latest success. */
  const served = new WeakMap<object, number>()
  let successes = 0
  let isBusy = false
  /** As long as there is only one asker, it has nobody to wait for. */
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
    async run(asker, work) {
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
        if (isServed) served.set(asker, ++successes)
        return isServed
      } finally {
        soon()
      }
    },
  }
}
