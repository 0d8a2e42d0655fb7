/**
 * Runs long work on the main thread in slices. Work is a generator that yields wherever it may be interrupted; between slices the
 * event loop turns and serves others. All work of one `Turns` shares its slices: in one turn of the event loop, all pieces of
 * work together get one slice, so a hundred of them delay others no longer than one does. They are served in order.
 */
export type Work<Result> = Generator<void, Result, void>

export interface Turns {
  /** Begins at once when no other work waits; work that fits into the slice is then done before this returns. */
  run<Result>(work: Work<Result>): Promise<Result>
}

interface TurnsOptions {
  /** How long all work together may hold the thread in one turn of the event loop. */
  readonly sliceMs?: number
  readonly nowMs?: () => number
}

// Too short to be noticed, and long enough that switching costs little.
const SLICE_MS = 8

interface Task {
  /** Works until the time is up; true when nothing is left to do. */
  advance(untilMs: number): boolean
}

export function createTurns({ sliceMs = SLICE_MS, nowMs = () => performance.now() }: TurnsOptions = {}): Turns {
  const waiting: Task[] = []
  let leftMs = sliceMs
  let isScheduled = false

  /** Called also when no work waits, so that work in the next turn gets a whole slice. */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      leftMs = sliceMs
      if (waiting.length > 0) workOff()
    })
  }

  function workOff(): void {
    const startedAtMs = nowMs()
    const untilMs = startedAtMs + leftMs
    let atMs = startedAtMs
    while (atMs < untilMs) {
      const task = waiting.shift()
      if (task === undefined) break
      if (!task.advance(untilMs)) waiting.push(task)
      atMs = nowMs()
    }
    leftMs -= atMs - startedAtMs
    schedule()
  }

  return {
    run<Result>(work: Work<Result>): Promise<Result> {
      const { promise, resolve, reject } = Promise.withResolvers<Result>()
      waiting.push({
        advance(untilMs) {
          try {
            do {
              const step = work.next()
              if (step.done !== true) continue
              resolve(step.value)
              return true
            } while (nowMs() < untilMs)
            return false
          } catch (error) {
            reject(error)
            return true
          }
        },
      })
      if (waiting.length === 1 && leftMs > 0) workOff()
      else schedule()
      return promise
    },
  }
}

/** Runs all of the work at once, for callers that do not delay others: tests, commands, threads of their own. */
export function finishNow<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Work of one step, for short work that comes in large numbers. */
// biome-ignore lint/correctness/useYield: it is one step
export function* inOneStep<Result>(act: () => Result): Work<Result> {
  return act()
}

/** One step for each item. */
export function* mapSteps<Item, Result>(items: Iterable<Item>, act: (item: Item) => Result): Work<Result[]> {
  const results: Result[] = []
  for (const item of items) {
    results.push(act(item))
    yield
  }
  return results
}
