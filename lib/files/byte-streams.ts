/** Bytes that are in memory, for whoever reads a stream of them. */
export async function* inOneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** The first bytes, `atLeast` of them unless there are fewer, and the whole source again. */
export async function readStart(
  iterator: AsyncIterator<Uint8Array>,
  atLeast: number,
): Promise<{ start: Buffer; source: AsyncIterable<Uint8Array> }> {
  const chunks: Uint8Array[] = []
  let size = 0
  while (size < atLeast) {
    const step = await iterator.next()
    if (step.done) break
    chunks.push(step.value)
    size += step.value.length
  }
  return { start: Buffer.concat(chunks), source: readOn(chunks, iterator) }
}

async function* readOn(chunks: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value
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
