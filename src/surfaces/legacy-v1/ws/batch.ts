/**
 * The messages of one turn of the event loop, as bytes. A batch is encoded once per dialect and written as one piece to every
 * reader: with thousands of readers the writes, not the messages, are what costs. A reader that is behind gets the batch
 * without its previews.
 *
 * An entry is for every reader or for those of one client. The dialects differ in the form of a preview and in its position:
 * with metadata a preview comes before the `progress` that it belongs to, plain after it.
 */
import { joinSmall } from '../../kit/streams/sse.ts'
import { encodePreview, encodePreviewWithMetadata, encodeText, type PreviewEvent } from './frames.ts'

export type Dialect = 'plain' | 'metadata'

export interface EncodedBatch {
  readonly all: readonly Buffer[]
  readonly allBytes: number
  /** Without the previews that a slow reader may miss. */
  readonly essential: readonly Buffer[]
  readonly essentialBytes: number
  readonly previewCount: number
  /** How many bytes of `essential` are pictures that are results. They may be large and must arrive. */
  readonly resultBytes: number
}

type Content =
  | { readonly kind: 'text' | 'progress' | 'binary'; readonly frame: Buffer }
  | { readonly kind: 'preview'; readonly jobId: string; readonly event: PreviewEvent }

/** `clientId`: whose readers get it; null: all. */
type Entry = Content & { readonly clientId: string | null }

export class Batch {
  /** Whom the entries that are added next are for; null: every reader. */
  clientId: string | null = null
  #entries: Entry[] = []
  #weight = 0
  readonly #clientIds = new Set<string>()

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  /** Bytes, not counting the headers of previews. */
  get weight(): number {
    return this.#weight
  }

  /** The last entry is a step, whose preview may still come: the two must stay together. */
  get isOpenEnded(): boolean {
    return this.#entries.at(-1)?.kind === 'progress'
  }

  /** Whether it holds something for this client that others do not get. */
  isFor(clientId: string): boolean {
    return this.#clientIds.has(clientId)
  }

  addText(json: string): void {
    this.#add({ kind: 'text', frame: encodeText(json) })
  }

  addTextForAll(json: string): void {
    const { clientId } = this
    this.clientId = null
    this.addText(json)
    this.clientId = clientId
  }

  /** A step of a node; a preview that is added next belongs to it. */
  addProgress(json: string): void {
    this.#add({ kind: 'progress', frame: encodeText(json) })
  }

  addBinary(frame: Buffer): void {
    this.#add({ kind: 'binary', frame })
  }

  addPreview(jobId: string, event: PreviewEvent): void {
    this.#push({ kind: 'preview', jobId, event }, event.bytes.byteLength)
  }

  #add(content: Exclude<Content, { kind: 'preview' }>): void {
    this.#push(content, content.frame.length)
  }

  #push(content: Content, weight: number): void {
    const { clientId } = this
    if (clientId !== null) this.#clientIds.add(clientId)
    this.#entries.push({ ...content, clientId })
    this.#weight += weight
  }

  /** For the readers of one client; null: for a reader whose client no entry names. */
  encode(dialect: Dialect, readerId: string | null): EncodedBatch {
    const all: Buffer[] = []
    const essential: Buffer[] = []
    let previewCount = 0
    let resultBytes = 0
    const entries = this.#entries.filter(({ clientId }) => clientId === null || clientId === readerId)
    for (const entry of inOrderOf(dialect, entries)) {
      const pieces = toPieces(dialect, entry)
      all.push(...pieces)
      const isResult = entry.kind === 'preview' && entry.event.isResult === true
      if (entry.kind === 'preview' && !isResult) previewCount++
      else essential.push(...pieces)
      if (isResult) resultBytes += bytesOf(pieces)
    }
    return {
      all: joinSmall(all),
      allBytes: bytesOf(all),
      essential: previewCount === 0 ? [] : joinSmall(essential),
      essentialBytes: bytesOf(essential),
      previewCount,
      resultBytes,
    }
  }
}

function inOrderOf(dialect: Dialect, entries: readonly Entry[]): readonly Entry[] {
  if (dialect === 'plain') return entries
  const ordered = [...entries]
  for (let at = 1; at < ordered.length; at++) {
    if (ordered[at].kind !== 'preview' || ordered[at - 1].kind !== 'progress') continue
    ;[ordered[at - 1], ordered[at]] = [ordered[at], ordered[at - 1]]
  }
  return ordered
}

function toPieces(dialect: Dialect, entry: Entry): readonly Buffer[] {
  if (entry.kind !== 'preview') return [entry.frame]
  return dialect === 'metadata' ? encodePreviewWithMetadata(entry.jobId, entry.event) : encodePreview(entry.event)
}

function bytesOf(pieces: readonly Buffer[]): number {
  let bytes = 0
  for (const piece of pieces) bytes += piece.length
  return bytes
}
