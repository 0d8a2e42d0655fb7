/**
 * The events of one run as its reader sees them. They wait here until they are taken; how many may wait is decided on the
 * other side, to which everything that was taken is acknowledged.
 */
import { inOneChunk } from '../../lib/files/in-one-chunk.ts'
import type { EngineEvent, NodeReport, ReportedItem } from '../graph/run-event.ts'
import type { MadeValue } from '../node/node-context.ts'
import type { RunEvent, SentFile, SentReport } from '../run/events/event-line.ts'
import { FileAside, toAsidePath } from './files-aside.ts'

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

type TakeAside = (file: number) => FileAside

function toReportedItem(item: SentFile | MadeValue, take: TakeAside): ReportedItem {
  if (item.kind === 'value') return item
  const { kind, filename, subfolder, folder, contentType, bytes } = item
  const named = { kind, filename, subfolder, folder, contentType, heldBytes: bytes.byteLength }
  if (bytes instanceof Uint8Array) return { ...named, read: () => inOneChunk(bytes) }
  const aside = take(bytes.file)
  aside.hold()
  let isHeld = true
  return {
    ...named,
    read: () => aside.read(bytes.at, bytes.byteLength),
    release() {
      if (isHeld) aside.drop()
      isHeld = false
    },
  }
}

function toNodeReport(report: SentReport, take: TakeAside): NodeReport {
  return Object.fromEntries(
    Object.entries(report).map(([key, items]) => [key, items.map((item) => toReportedItem(item, take))]),
  )
}

/** Takes the files that lie beside the message out of their folder, which may be gone at any time. */
export function toEngineEvent(event: RunEvent, asideFolder: string): EngineEvent {
  if (event.type !== 'node_report') return event
  const taken = new Map<number, FileAside>()
  const take = (file: number) => {
    const aside = taken.get(file) ?? new FileAside(toAsidePath(asideFolder, file))
    taken.set(file, aside)
    return aside
  }
  return { ...event, report: toNodeReport(event.report, take) }
}

/** Nobody will read it. */
export function releaseFiles(event: EngineEvent): void {
  if (event.type !== 'node_report') return
  for (const item of Object.values(event.report).flat()) if (item.kind === 'file') item.release?.()
}

interface WaitingEvent {
  readonly event: EngineEvent
  readonly weight: number
}

export class RunStream {
  /** The reader has been told so. */
  hasSucceeded = false
  readonly #onTaken: (weight: number) => void
  readonly #waiting: WaitingEvent[] = []
  #failure: Error | null = null
  #arrived = Promise.withResolvers<void>()

  constructor(onTaken: (weight: number) => void) {
    this.#onTaken = onTaken
  }

  push(event: EngineEvent, weight = 0): void {
    this.#waiting.push({ event, weight })
    this.#wake()
  }

  /** The engine is gone: the reader's next step throws. */
  fail(error: Error): void {
    this.#failure ??= error
    this.#wake()
  }

  async *read(): AsyncGenerator<EngineEvent, void, undefined> {
    let batch: IteratorObject<WaitingEvent, undefined> = [].values()
    try {
      for (;;) {
        batch = this.#waiting.splice(0).values()
        for (let next = batch.next(); !next.done; next = batch.next()) {
          const { event, weight } = next.value
          this.#onTaken(weight)
          if (event.type === 'succeeded') this.hasSucceeded = true
          yield event
          if (LAST_EVENTS.has(event.type)) return
        }
        if (this.#waiting.length > 0) continue
        if (this.#failure !== null) throw this.#failure
        await this.#arrived.promise
      }
    } finally {
      for (const { event } of [...batch, ...this.#waiting]) releaseFiles(event)
    }
  }

  #wake(): void {
    this.#arrived.resolve()
    this.#arrived = Promise.withResolvers<void>()
  }
}
