/**
 * One question to the service, put again and again, with one answer on its way at a time. A question that is asked again meanwhile is
 * put once more after that answer, which may be older than the reason to ask; the answer itself is not given up, so that frequent
 * changes do not keep a slow one from ever being shown.
 */
export interface Question {
  /** Puts it now, and gives up an answer that is on its way. */
  ask(): void
  /** Puts it now, or after the answer that is on its way. */
  askAgain(): void
  giveUp(): void
}

/** An answer that was not there for so long is given up when it is asked for again: its connection may be dead. */
const PATIENCE_MS = 30_000

export function createQuestion(
  put: (signal: AbortSignal) => Promise<void>,
  now: () => number = () => performance.now(),
): Question {
  let controller: AbortController | null = null
  let askedAt = 0
  let isAskedAgain = false

  async function ask(): Promise<void> {
    controller?.abort()
    const mine = new AbortController()
    controller = mine
    askedAt = now()
    isAskedAgain = false
    try {
      await put(mine.signal)
    } finally {
      if (controller === mine) {
        controller = null
        if (isAskedAgain) void ask()
      }
    }
  }

  return {
    ask: () => void ask(),
    askAgain() {
      if (controller !== null && now() - askedAt < PATIENCE_MS) isAskedAgain = true
      else void ask()
    },
    giveUp() {
      controller?.abort()
      controller = null
    },
  }
}
