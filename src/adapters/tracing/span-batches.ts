/**
 * Ended spans as the bodies of requests. Each span is written behind the last one into the same bytes as soon as it ends: nothing of
 * it is left for the garbage collector to carry around, and a full batch is ready to be sent as it is.
 */
import { createWriteHead, createWriteSpan, type EndedSpan, MAX_SPAN_BYTES } from './otlp-proto.ts'
import { ProtoWriter } from './proto-writer.ts'

export interface SpanBatch {
  /** Together the body of a request. */
  readonly head: Buffer
  readonly spans: Buffer
  readonly count: number
}

interface SpanBatches {
  /** How many spans wait, in all batches. */
  count(): number
  /** Whether there is a batch that takes no more spans. */
  hasFull(): boolean
  /** Returns whether this made a batch full. */
  add(span: EndedSpan): boolean
  /** The oldest spans, until they are dropped; null: there are none. */
  first(): SpanBatch | null
  dropFirst(): void
}

interface SpanBatchesOptions {
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  /** In one batch. */
  readonly maxCount: number
}

// A span has some hundred bytes.
const BATCH_BYTES = 262_144

export function createSpanBatches({ resource, version, maxCount }: SpanBatchesOptions): SpanBatches {
  const writeHead = createWriteHead(resource, { name: 'atelier', version })
  const writeSpan = createWriteSpan()
  const full: SpanBatch[] = []
  // One is kept for the next spans: a service with few of them never needs another.
  let spare: Buffer | null = null
  let writer = new ProtoWriter(Buffer.allocUnsafeSlow(BATCH_BYTES))
  let count = 0
  let fullCount = 0

  function closeBatch(): void {
    const { bytes, at } = writer
    full.push({ head: writeHead(at), spans: bytes.subarray(0, at), count })
    fullCount += count
    count = 0
    writer = new ProtoWriter(spare ?? Buffer.allocUnsafeSlow(BATCH_BYTES))
    spare = null
  }

  return {
    count: () => fullCount + count,
    hasFull: () => full.length > 0,
    add(span) {
      writeSpan(writer, span)
      count++
      if (count < maxCount && writer.at + MAX_SPAN_BYTES <= BATCH_BYTES) return false
      closeBatch()
      return true
    },
    first() {
      if (full.length === 0 && count > 0) closeBatch()
      return full[0] ?? null
    },
    dropFirst() {
      const dropped = full.shift()
      if (dropped === undefined) return
      fullCount -= dropped.count
      spare = Buffer.from(dropped.spans.buffer)
    },
  }
}
