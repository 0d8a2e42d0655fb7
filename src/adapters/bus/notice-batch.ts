/**
 * Lines that wait to be sent together, in the order in which they were said. Equal lines are one, and a line that only says
 * which version something has gives way to the next one about the same. Pure.
 */
import type { EncodedNotice, Notice } from '../../domain/events/notice-lines.ts'

// What one batch may hold.
const MAX_BYTES = 1024 * 1024

interface Waiting {
  readonly line: string
  readonly bytes: number
}

export class NoticeBatch {
  readonly #lines = new Map<string, Waiting>()
  readonly #maxPayloadBytes: number
  #bytes = 0
  #hasLost = false

  constructor(maxPayloadBytes: number) {
    this.#maxPayloadBytes = maxPayloadBytes
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0 && !this.#hasLost
  }

  /** Whether something was left out that others cannot do without: they must look again at everything. */
  get hasLost(): boolean {
    return this.#hasLost
  }

  add({ line }: EncodedNotice, notice: Notice): void {
    const bytes = Buffer.byteLength(line) + 1
    const key = mergeKeyOf(notice) ?? line
    const before = this.#lines.get(key)
    // Said again as it was: where it stands already it comes early enough.
    if (before?.line === line) return
    if (before !== undefined) {
      this.#lines.delete(key)
      this.#bytes -= before.bytes
    }
    if (bytes > this.#maxPayloadBytes || this.#bytes + bytes > MAX_BYTES) {
      this.#hasLost = true
      return
    }
    this.#lines.set(key, { line, bytes })
    this.#bytes += bytes
  }

  /** What was said, or what was taken last, could not be sent. */
  lose(): void {
    this.#hasLost = true
    this.#clear()
  }

  /**
   * All lines, packed into as few texts as they fit in; empties the batch. A line that is longer than `maxBytes`, where that is less
   * than was said when the batch was made, is a text of its own.
   */
  take(maxBytes = this.#maxPayloadBytes): string[] {
    const payloads: string[] = []
    let payload: string[] = []
    let size = 0
    for (const { line, bytes } of this.#lines.values()) {
      if (payload.length > 0 && size + bytes > maxBytes) {
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

  #clear(): void {
    this.#lines.clear()
    this.#bytes = 0
  }
}

/** The next line with the same key says everything that this one did. */
function mergeKeyOf(notice: Notice): string | null {
  if (notice.kind === 'changed') return notice.notice.move === undefined ? `changed ${notice.notice.jobId}` : null
  return notice.kind === 'directory' ? `directory ${notice.notice.directory}` : null
}
