/**
 * Events of a run on their way to its reader. With a slow reader the queue grows up to a bound; then previews and progress are
 * dropped, oldest first, and after them printed lines. Outputs are never lost by that: reports stay, and so do pictures that
 * exist nowhere else.
 */
import type { EngineEvent } from '../../../../../engine/graph/run-event.ts'

interface EventQueue extends AsyncIterable<EngineEvent> {
  push(event: EngineEvent): void
  /** Events that were pushed before are still read. */
  end(): void
  fail(error: unknown): void
}

const EXPENDABLE: readonly EngineEvent['type'][] = ['preview', 'node_progress', 'log', 'node_text']

function isResult(event: EngineEvent): boolean {
  return event.type === 'preview' && event.isResult === true
}

export function createEventQueue(maxWaiting: number): EventQueue {
  const waiting: EngineEvent[] = []
  let over: { readonly error: unknown } | 'ended' | null = null
  let wake: (() => void) | null = null

  function makeRoom(): void {
    for (const type of EXPENDABLE) {
      const at = waiting.findIndex((event) => event.type === type && !isResult(event))
      if (at === -1) continue
      waiting.splice(at, 1)
      return
    }
  }

  return {
    push(event) {
      if (over !== null) return
      if (waiting.length >= maxWaiting) makeRoom()
      waiting.push(event)
      wake?.()
    },
    end() {
      over ??= 'ended'
      wake?.()
    },
    fail(error) {
      over ??= { error }
      wake?.()
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
        if (over === 'ended') return
        if (over !== null) throw over.error
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = null
      }
    },
  }
}
