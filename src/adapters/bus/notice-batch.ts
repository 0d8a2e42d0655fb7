/**
 * Lines that wait to be sent together, in the order in which they were said. Equal lines are one. A line that is only about how
 * far something is gives way to the next one about the same; when there are too many, such lines are left out, because
 * whoever needs them reads again after a while. Pure.
 */
import type { EncodedNotice, Notice } from '../../domain/events/notice-lines.ts'

/** Postgres refuses payloads of 8000 bytes and more; the sender's name stands before the lines. */
export const MAX_PAYLOAD_BYTES = 7800

// What one batch may hold of lines that may be left out, and of lines at all.
const MAX_LIGHT_BYTES = 32 * 1024
const MAX_BYTES = 1024 * 1024

interface Waiting {
  readonly line: string
  readonly bytes: number
  readonly isLight: boolean
}

export class NoticeBatch {
  readonly #lines = new Map<string, Waiting>()
  #bytes = 0
  #lightBytes = 0
  #hasLost = false

  get isEmpty(): boolean {
    return this.#lines.size === 0 && !this.#hasLost
  }

  /** Whether something was left out that others cannot do without: they must look again at everything. */
  get hasLost(): boolean {
    return this.#hasLost
  }

  add({ line }: EncodedNotice, notice: Notice): void {
    const bytes = Buffer.byteLength(line) + 1
    const isLight = isLightNotice(notice)
    if (bytes > MAX_PAYLOAD_BYTES) {
      this.#hasLost ||= !isLight && notice.kind !== 'live'
      return
    }
    const key = mergeKeyOf(notice) ?? line
    const before = this.#lines.get(key)
    // Said again as it was: where it stands already it comes early enough.
    if (before?.line === line) return
    if (before !== undefined) this.#drop(key, before)
    if (isLight && this.#lightBytes + bytes > MAX_LIGHT_BYTES) return
    if (this.#bytes + bytes > MAX_BYTES) {
      this.#hasLost = true
      return
    }
    this.#lines.set(key, { line, bytes, isLight })
    this.#bytes += bytes
    if (isLight) this.#lightBytes += bytes
  }

  /** What was said, or what was taken last, could not be sent. */
  lose(): void {
    this.#hasLost = true
    this.#clear()
  }

  /** All lines, packed into as few texts as they fit in; empties the batch. */
  take(): string[] {
    const payloads: string[] = []
    let payload: string[] = []
    let size = 0
    for (const { line, bytes } of this.#lines.values()) {
      if (size + bytes > MAX_PAYLOAD_BYTES) {
        payloads.push(payload.join('\n'))
        payload = []
        size = 0
      }
      payload.push(line)
      size += bytes
    }
    if (payload.length > 0) payloads.push(payload.join('\n'))
    this.#clear()
    this.#hasLost = false
    return payloads
  }

  #drop(key: string, { bytes, isLight }: Waiting): void {
    this.#lines.delete(key)
    this.#bytes -= bytes
    if (isLight) this.#lightBytes -= bytes
  }

  #clear(): void {
    this.#lines.clear()
    this.#bytes = 0
    this.#lightBytes = 0
  }
}

/** The next line with the same key says everything that this one did. */
function mergeKeyOf(notice: Notice): string | null {
  if (notice.kind === 'changed') return notice.notice.move === undefined ? `changed ${notice.notice.jobId}` : null
  if (notice.kind === 'directory') return `directory ${notice.notice.directory}`
  if (notice.kind !== 'live' || notice.notice.event.type !== 'node_progress') return null
  return `progress ${notice.notice.jobId} ${notice.notice.event.nodeId}`
}

/** Lost without harm: the job is read again soon, or the next step of the node comes. */
function isLightNotice(notice: Notice): boolean {
  if (notice.kind === 'changed') return notice.notice.move === undefined
  return notice.kind === 'live' && notice.notice.event.type === 'node_progress'
}
