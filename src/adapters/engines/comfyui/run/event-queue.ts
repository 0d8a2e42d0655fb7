/**
 * Events of a run on their way to whoever reads it. A slow reader makes it grow, up to a bound; then previews and steps give
 * way, oldest first, and after them printed lines. What decides outputs is never lost by that: the history has it, and pictures
 * that exist nowhere else stay.
 */
import type { EngineEvent } from '../../../../../engine/graph/run-event.ts'

export interface EventQueue extends AsyncIterable<EngineEvent> {
  push(event: EngineEvent): void
  /** What was pushed is still read before the end. */
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
