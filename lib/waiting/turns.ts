/**
 * Long work on the thread that serves everybody, done in slices. Work is a generator that yields wherever it may be interrupted;
 * between slices the loop turns and others are served. All work that shares one `Turns` shares its slices: in one turn of the
 * loop the works together get one slice, so a hundred of them hold nobody up longer than one does. They take turns in order.
 */
export type Work<Result> = Generator<void, Result, void>

export interface Turns {
  /** Begins at once where nobody waits; work that fits into the slice is then done before this returns. */
  run<Result>(work: Work<Result>): Promise<Result>
}

interface TurnsOptions {
  /** How long all works together may hold the thread in one turn of the loop. */
  readonly sliceMs?: number
  readonly nowMs?: () => number
}

// Far below what anybody notices, and long enough that the turns themselves cost little.
const SLICE_MS = 8

interface Task {
  /** Goes on until the time is up; true when nothing is left to do. */
  advance(untilMs: number): boolean
}

export function createTurns({ sliceMs = SLICE_MS, nowMs = () => performance.now() }: TurnsOptions = {}): Turns {
  const waiting: Task[] = []
  let leftMs = sliceMs
  let isScheduled = false

  /** Also when nothing waits: whoever comes in the next turn finds a whole slice. */
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

/** The whole work at once, for callers that hold nobody up: tests, commands, threads of their own. */
export function finishNow<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** Work that is short by itself and comes in masses. */
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
