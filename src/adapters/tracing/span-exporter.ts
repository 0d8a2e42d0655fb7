/**
 * Brings ended spans to a collector, a batch at a time, beside everything else that the process does. What waits is bounded: while the
 * collector is away or too slow, further spans are dropped and counted. Nobody ever waits for it but the end of the process, and that
 * for a bounded time.
 */
import type { Log } from '../../../lib/log.ts'
import { openOutboundClient } from '../../../lib/outbound/outbound-client.ts'
import { createBackoff } from '../../../lib/waiting/backoff.ts'
import { settlesWithin } from '../../../lib/waiting/sleep.ts'
import type { EndedSpan } from './otlp-proto.ts'
import { createSpanBatches, type SpanBatch } from './span-batches.ts'

interface SpanExporter extends AsyncDisposable {
  add(span: EndedSpan): void
}

interface SpanExporterOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly resource: Readonly<Record<string, string>>
  readonly version: string
  readonly log: Log
  /** How long spans are gathered before they are sent; left out: a second. */
  readonly gatherMs?: number
}

const MAX_WAITING = 8192
// Some hundred kilobytes: a request costs as much as many spans.
const MAX_BATCH = 1024
const GATHER_MS = 1000
const MAX_TRIES = 4
const MAX_ANSWER_BYTES = 65_536
// How long the end of the process may wait for what is left.
const CLOSE_WITHIN_MS = 3000
// The collector asks to be tried again later; every other refusal is final (OTLP/HTTP, "Failures").
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504])

type SendOutcome = 'taken' | 'refused' | 'try_again'

export function openSpanExporter(options: SpanExporterOptions): SpanExporter {
  const { resource, version, timeoutMs, log, gatherMs = GATHER_MS } = options
  const { origin, pathname, search } = new URL(options.url)
  const headers = { ...options.headers, 'content-type': 'application/x-protobuf' }
  const client = openOutboundClient({ connectionsPerHost: 1 })
  const backoff = createBackoff({ firstMs: 1000, maxMs: 30_000 })
  const waiting = createSpanBatches({ resource, version, maxCount: MAX_BATCH })
  let timer: NodeJS.Timeout | null = null
  let sending: Promise<void> | null = null
  let tries = 0
  let dropped = 0
  let isAway = false
  let isClosing = false

  function schedule(afterMs: number): void {
    if (timer !== null || sending !== null || isClosing) return
    timer = setTimeout(begin, afterMs)
  }

  function begin(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (!isClosing) sending ??= sendAll()
  }

  async function sendAll(): Promise<void> {
    let pauseMs = await sendBatch()
    // What came meanwhile is gathered again, unless it fills a batch already, or nothing more can come.
    while (pauseMs === null && (isClosing ? waiting.count() > 0 : waiting.hasFull())) pauseMs = await sendBatch()
    sending = null
    if (pauseMs !== null || waiting.count() > 0) schedule(pauseMs ?? gatherMs)
  }

  /** null: go on; else how long to wait before the next attempt. */
  async function sendBatch(): Promise<number | null> {
    const batch = waiting.first()
    if (batch === null) return null
    const { outcome, reason } = await send(batch)
    if (outcome === 'try_again' && ++tries < MAX_TRIES && !isClosing) {
      tellAway(reason)
      return backoff.nextMs()
    }
    waiting.dropFirst()
    tries = 0
    if (outcome === 'taken') {
      tellBack()
      return null
    }
    dropped += batch.count
    tellAway(reason)
    return outcome === 'try_again' && !isClosing ? backoff.nextMs() : null
  }

  async function send({ head, spans }: SpanBatch): Promise<{ outcome: SendOutcome; reason: string }> {
    const body = Buffer.concat([head, spans])
    const request = { origin, path: `${pathname}${search}`, method: 'POST', headers, body } as const
    try {
      const { status } = await client.send(request, { totalTimeMs: timeoutMs, maxBytes: MAX_ANSWER_BYTES })
      if (status < 300) return { outcome: 'taken', reason: '' }
      return { outcome: PASSING.has(status) ? 'try_again' : 'refused', reason: `it answered ${status}` }
    } catch (error) {
      return { outcome: 'try_again', reason: (error as Error).message }
    }
  }

  function tellAway(reason: string): void {
    if (!isAway) log.warn({ reason }, 'the collector does not take traces; they are dropped until it does')
    isAway = true
  }

  function tellBack(): void {
    backoff.reset()
    if (isAway) log.info({ dropped }, 'the collector takes traces again')
    isAway = false
  }

  async function close(): Promise<void> {
    isClosing = true
    if (timer !== null) clearTimeout(timer)
    timer = null
    const rest = (async () => {
      await sending
      await sendAll()
    })()
    if (!(await settlesWithin(rest, CLOSE_WITHIN_MS))) dropped += waiting.count()
    if (dropped > 0) log.warn({ dropped }, 'spans were dropped')
    await client[Symbol.asyncDispose]()
  }

  let closed: Promise<void> | null = null
  return {
    add(span) {
      if (waiting.count() >= MAX_WAITING || isClosing) {
        dropped++
        return
      }
      const isFull = waiting.add(span)
      // While the collector is away, what fills up waits for the next attempt.
      if (isFull && !isAway) setImmediate(begin)
      else schedule(gatherMs)
    },
    [Symbol.asyncDispose]() {
      closed ??= close()
      return closed
    },
  }
}
