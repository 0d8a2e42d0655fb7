/** Bytes that are in memory, for whoever reads a stream of them. */
export async function* inOneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/**
 * An iteration that can be given up while the source is silent. A plain `for await` would notice an abort or a failed write
 * only with the next chunk, which a stalled client never sends.
 */
export interface Interruptible<Item> {
  next(): Promise<IteratorResult<Item>>
  /** The step under way and all later ones fail with `reason`. The first reason stays. */
  interrupt(reason: unknown): void
  /** Tells the source that no more will be read. Not awaited: the end of a silent source waits behind its pending step. */
  stop(): void
}

export function createInterruptible<Item>(source: AsyncIterable<Item>): Interruptible<Item> {
  const iterator = source[Symbol.asyncIterator]()
  let interruption: { readonly reason: unknown } | null = null
  let rejectStep: (reason: unknown) => void = () => {}
  return {
    next() {
      if (interruption) return Promise.reject(interruption.reason)
      return new Promise((resolve, reject) => {
        rejectStep = reject
        iterator.next().then(resolve, reject)
      })
    },
    interrupt(reason) {
      interruption ??= { reason }
      rejectStep(interruption.reason)
    },
    stop() {
      iterator.return?.().then(undefined, () => {})
    },
  }
}
