/** At most `width` pieces of work at a time; the others wait in the order in which they came. */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>

export function createSemaphore(width: number): Semaphore {
  let free = width
  const waiting: (() => void)[] = []
  return async function limited(work) {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free++
      else next()
    }
  }
}
