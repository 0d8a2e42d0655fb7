/**
 * How many generations one provider is given at a time. Whoever comes later waits in line, within its own deadline: partners
 * answer a crowd with refusals that cost more than the wait.
 */
export interface Slots {
  /** Resolves to the function that gives the slot back (once; more often is harmless). Rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<() => void>
  readonly taken: number
  readonly free: number
  readonly waiting: number
}

export function createSlots(width: number): Slots {
  let taken = 0
  const line = new Set<() => void>()

  function giveBack(): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const [next] = line
      if (next === undefined) taken--
      else next()
    }
  }

  function waitInLine(signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        line.delete(enter)
        reject(signal.reason)
      }
      const enter = () => {
        line.delete(enter)
        signal.removeEventListener('abort', leave)
        resolve(giveBack())
      }
      line.add(enter)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  return {
    get taken() {
      return taken
    },
    get free() {
      return width - taken
    },
    get waiting() {
      return line.size
    },
    async take(signal) {
      signal.throwIfAborted()
      if (taken >= width) return waitInLine(signal)
      taken++
      return giveBack()
    },
  }
}
