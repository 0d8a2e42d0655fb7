/**
 * The events of one run as its reader sees them. They wait here until they are taken; how many may wait is decided on the
 * other side, to which everything that was taken is acknowledged.
 */

import { closeSync, openSync, read as readFd, unlinkSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inOneChunk } from '../../lib/files/byte-streams.ts'
import type { EngineEvent, NodeReport, ReportedItem } from '../graph/run-event.ts'
import type { MadeReport, MadeValue } from '../node/node-context.ts'
import { Interrupted, NodeError } from '../node/node-error.ts'
import type { RunEvent, SentFile, SentReport } from '../run/run-state.ts'

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

// Large files of reports on their way out of the engine's process. A message of hundreds of megabytes would hold up whoever reads
// it, so their bytes lie in a file beside the message, one for each report. The opener takes it out of the folder when the message
// arrives and reads it in pieces; it is gone with its last reader, and with the opener.

// Of one report, what travels within its message.
const MAX_WITHIN_BYTES = 1_048_576
const PIECE_BYTES = 262_144

const toAsidePath = (folder: string, file: number) => join(folder, String(file))

type SetAside = (report: MadeReport, isCancelled: () => boolean) => SentReport | Promise<SentReport>

/** The end of the engine thread. The folder is made with the first file. */
export function createAside(folder: string): SetAside {
  let nextFile = 0

  async function write(file: number, parts: readonly Uint8Array[], isCancelled: () => boolean): Promise<void> {
    const path = toAsidePath(folder, file)
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await using handle = await open(path, 'w', 0o600)
      for (const part of parts) await handle.writeFile(part)
      if (isCancelled()) throw new Interrupted()
    } catch (error) {
      await rm(path, { force: true }).catch(() => {})
      if (error instanceof Interrupted) throw error
      const { code } = error as NodeJS.ErrnoException
      throw new NodeError('OSError', `what the node made could not be written to a file of this machine (${code})`)
    }
  }

  return (report, isCancelled) => {
    const file = nextFile
    const parts: Uint8Array[] = []
    let withinBytes = 0
    let at = 0
    const toSent = (item: MadeReport[string][number]): SentReport[string][number] => {
      if (item.kind === 'value') return item
      const { byteLength } = item.bytes
      if (withinBytes + byteLength <= MAX_WITHIN_BYTES) {
        withinBytes += byteLength
        return item
      }
      parts.push(item.bytes)
      at += byteLength
      return { ...item, bytes: { file, at: at - byteLength, byteLength } }
    }
    const sent = Object.fromEntries(Object.entries(report).map(([key, items]) => [key, items.map(toSent)]))
    if (parts.length === 0) return report
    nextFile += 1
    return write(file, parts, isCancelled).then(() => sent)
  }
}

const readAt = promisify(readFd)
// Whoever keeps a report without releasing its files lets go of them when he forgets it.
const forgotten = new FinalizationRegistry<number>((fd) => closeSync(fd))

/** The opener's end: a file that has no name any more. Those who hold it are counted; the last one closes it. */
class FileAside {
  readonly #fd: number
  #holders = 0
  #isClosed = false

  constructor(path: string) {
    this.#fd = openSync(path, 'r')
    forgotten.register(this, this.#fd, this)
    unlinkSync(path)
  }

  hold(): void {
    if (this.#isClosed) throw new Error('the file was released')
    this.#holders += 1
  }

  drop(): void {
    this.#holders -= 1
    if (this.#holders > 0 || this.#isClosed) return
    this.#isClosed = true
    forgotten.unregister(this)
    closeSync(this.#fd)
  }

  async *read(at: number, byteLength: number): AsyncGenerator<Uint8Array> {
    this.hold()
    try {
      for (let done = 0; done < byteLength; ) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, byteLength - done))
        const { bytesRead } = await readAt(this.#fd, piece, 0, piece.length, at + done)
        if (bytesRead === 0) throw new Error('a file of the engine is shorter than it was')
        done += bytesRead
        yield piece.subarray(0, bytesRead)
      }
    } finally {
      this.drop()
    }
  }
}
