/**
 * A source that stops when the signal says so, even while it is silent: whoever reads it can be freed from a source that
 * hangs. Throws the signal's reason.
 */
export async function* abortable<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  let onAbort = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason)
  })
  aborted.catch(() => {})
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort)
  let ended = false
  try {
    while (true) {
      const step = await Promise.race([iterator.next(), aborted])
      if (step.done) {
        ended = true
        return
      }
      yield step.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that hangs in `next` would hang here as well.
    if (!ended) iterator.return?.().then(undefined, () => {})
  }
}
