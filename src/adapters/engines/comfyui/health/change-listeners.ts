/** Those who want to hear of every change of an engine's state, and those who wait for one. */

export interface ChangeListeners {
  add(listener: () => void): () => void
  notify(): void
  /** Resolves as soon as the condition holds after a change, holds already, or the signal is aborted. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void>
}

export function createChangeListeners(): ChangeListeners {
  const listeners = new Set<() => void>()
  return {
    add(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    notify() {
      for (const listener of listeners) listener()
    },
    until(holds, signal) {
      return new Promise((resolve) => {
        const look = () => {
          if (!holds() && !signal.aborted) return
          listeners.delete(look)
          signal.removeEventListener('abort', look)
          resolve()
        }
        listeners.add(look)
        signal.addEventListener('abort', look)
        look()
      })
    },
  }
}
