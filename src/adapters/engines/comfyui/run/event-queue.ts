/**
 * Events of a run on their way to its reader. With a slow reader the queue grows up to a bound; then previews and progress are
 * dropped, oldest first, and after them printed lines. Outputs are never lost by that: reports stay, and so do pictures that
 * exist nowhere else.
 */
import type { EngineEvent } from '../../../../../engine/graph/run-event.ts'

const EXPENDABLE: readonly EngineEvent['type'][] = ['preview', 'node_progress', 'log', 'node_text']

function isResult(event: EngineEvent): boolean {
  return event.type === 'preview' && event.isResult === true
}

export class EventQueue implements AsyncIterable<EngineEvent> {
  readonly #maxWaiting: number
  readonly #waiting: EngineEvent[] = []
  #over: { readonly error: unknown } | 'ended' | null = null
  #wake: (() => void) | null = null
  #onDropped: ((event: EngineEvent) => void) | null = null

  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  push(event: EngineEvent): void {
    if (this.#onDropped !== null) {
      this.#onDropped(event)
      return
    }
    if (this.#over !== null) return
    if (this.#waiting.length >= this.#maxWaiting) this.#makeRoom()
    this.#waiting.push(event)
    this.#wake?.()
  }

  /** Events that were pushed before are still read. */
  end(): void {
    this.#over ??= 'ended'
    this.#wake?.()
  }

  fail(error: unknown): void {
    this.#over ??= { error }
    this.#wake?.()
  }

  /** Nobody reads any more: what waits, and what still comes, is handed to `onDropped`. */
  abandon(onDropped: (event: EngineEvent) => void): void {
    this.#onDropped = onDropped
    for (const event of this.#waiting.splice(0)) onDropped(event)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EngineEvent, void, undefined> {
    const waiting = this.#waiting
    while (true) {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
      const over = this.#over
      if (over === 'ended') return
      if (over !== null) throw over.error
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
  }

  #makeRoom(): void {
    for (const type of EXPENDABLE) {
      const at = this.#waiting.findIndex((event) => event.type === type && !isResult(event))
      if (at === -1) continue
      this.#waiting.splice(at, 1)
      return
    }
  }
}
