/**
 * Large files of reports on their way out of the engine's process. A message of hundreds of megabytes would hold up whoever reads
 * it, so their bytes lie in a file beside the message, one for each report. The opener takes it out of the folder when the message
 * arrives and reads it in pieces; it is gone with its last reader, and with the opener.
 */
import { closeSync, openSync, read as readFd, unlinkSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { MadeReport } from '../node/node-context.ts'
import { Interrupted, NodeError } from '../node/node-error.ts'
import type { SentReport } from '../run/events/event-line.ts'

// Of one report, what travels within its message.
const MAX_WITHIN_BYTES = 1_048_576
const PIECE_BYTES = 262_144

export const toAsidePath = (folder: string, file: number) => join(folder, String(file))

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
export class FileAside {
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
