/**
 * The events of one run as its reader sees them. They wait here until they are taken; how many may wait is decided on the
 * other side, to which everything that was taken is acknowledged.
 */
import { inOneChunk } from '../../lib/files/in-one-chunk.ts'
import type { EngineEvent, NodeReport, ReportedItem } from '../graph/run-event.ts'
import type { MadeFile, MadeReport, MadeValue } from '../node/node-context.ts'
import { type RunEvent, weightOf } from '../run/events/made-event.ts'

/**
 * Thrown to the reader of a run when the thread of the engine has ended and this run was not the one that it was working on.
 * The engine goes on with a new thread, so the graph may be run again.
 */
export class EngineThreadLostError extends Error {
  /** The run that took the thread down is known, and it was another one. */
  readonly isBlameless: boolean

  constructor(message: string, { isBlameless }: { readonly isBlameless: boolean }) {
    super(message)
    this.name = 'EngineThreadLostError'
    this.isBlameless = isBlameless
  }
}

const LAST_EVENTS: ReadonlySet<EngineEvent['type']> = new Set(['succeeded', 'failed', 'interrupted'])

function toReportedItem(item: MadeFile | MadeValue): ReportedItem {
  if (item.kind === 'value') return item
  const { kind, filename, subfolder, folder, contentType, bytes } = item
  return {
    ...{ kind, filename, subfolder, folder, contentType },
    heldBytes: bytes.byteLength,
    read: () => inOneChunk(bytes),
  }
}

function toNodeReport(report: MadeReport): NodeReport {
  return Object.fromEntries(Object.entries(report).map(([key, items]) => [key, items.map(toReportedItem)]))
}

function toEngineEvent(event: RunEvent): EngineEvent {
  return event.type === 'node_report' ? { ...event, report: toNodeReport(event.report) } : event
}

export class RunStream {
  /** The reader has been told so. */
  hasSucceeded = false
  readonly #onTaken: (weight: number) => void
  readonly #waiting: RunEvent[] = []
  #failure: Error | null = null
  #arrived = Promise.withResolvers<void>()

  constructor(onTaken: (weight: number) => void) {
    this.#onTaken = onTaken
  }

  push(events: readonly RunEvent[]): void {
    for (const event of events) this.#waiting.push(event)
    this.#wake()
  }

  /** The engine is gone: the reader's next step throws. */
  fail(error: Error): void {
    this.#failure ??= error
    this.#wake()
  }

  async *read(): AsyncGenerator<EngineEvent, void, undefined> {
    for (;;) {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting.splice(0)
        for (const event of batch) {
          this.#onTaken(weightOf(event))
          if (event.type === 'succeeded') this.hasSucceeded = true
          yield toEngineEvent(event)
          if (LAST_EVENTS.has(event.type)) return
        }
      }
      if (this.#failure !== null) throw this.#failure
      await this.#arrived.promise
    }
  }

  #wake(): void {
    this.#arrived.resolve()
    this.#arrived = Promise.withResolvers<void>()
  }
}
