/**
 * An answer that comes as events: whoever waits gets each as it comes, and all of them are kept as one answer. The provider is listened
 * to whether or not anybody still waits, because what it makes is paid for. An answer that is cut off in the middle is charged by what
 * came of it; one of which nothing came failed.
 */
import type { Log } from '../../../../lib/log.ts'
import { type ProviderRefusal, type ProviderResult, UnreadableEvent } from '../provider.ts'
import { type DrivenCall, servingModelOf } from './live-calls.ts'

interface RelayOptions {
  /** What is more than this goes to whoever waits and is not kept. */
  readonly maxKeptBytes: number
  /** An answer that takes longer is cut off. */
  readonly maxMs: number
  readonly log: Log
}

// Of texts, far above what any model writes.
const MAX_BYTES = 64 * 1024 * 1024

const BROKEN_OFF: ProviderRefusal = {
  reason: 'failed',
  message: 'the provider broke off before it answered anything',
  upstreamStatus: null,
  generation: 'possible',
}

type Relayed =
  | { readonly outcome: 'finished'; readonly result: ProviderResult }
  | { readonly outcome: 'refused'; readonly refusal: ProviderRefusal }

/** `finished`: with all that came as its body. */
export async function relayEvents(
  call: DrivenCall,
  result: ProviderResult,
  { maxKeptBytes, maxMs, log }: RelayOptions,
): Promise<Relayed> {
  const { events, body, contentType } = result
  if (events === undefined || Buffer.isBuffer(body)) return { outcome: 'finished', result }
  const { live } = call
  // Whoever comes later gets the whole answer at its end.
  const { relay } = live
  const kept: Uint8Array[] = []
  let bytes = 0
  const pass = (part: Uint8Array) => {
    if (part.length === 0) return
    bytes += part.length
    if (bytes <= maxKeptBytes) kept.push(part)
    else kept.length = 0
    if (live.relay === relay) relay?.write(part)
  }
  const timer = setTimeout(() => live.interrupt(), maxMs)
  let isEnded = false
  relay?.begin(contentType, call.serving?.served ?? null)
  try {
    for await (const chunk of body) {
      pass(events.read(chunk))
      if (bytes > MAX_BYTES) throw new Error('the answer is too long')
    }
    isEnded = true
  } catch (error) {
    if (error instanceof UnreadableEvent) pass(error.before)
    log.warn({ err: error, callId: live.ref.id, model: servingModelOf(call).id }, 'an answer broke off')
  } finally {
    clearTimeout(timer)
  }
  const { rest, isWhole, hasOutput, usage, costMicros } = events.end(isEnded)
  if (!isWhole && !hasOutput && costMicros === null) return { outcome: 'refused', refusal: BROKEN_OFF }
  pass(rest)
  return {
    outcome: 'finished',
    result: {
      ...{ body: Buffer.concat(kept), contentType, usage, costMicros },
      ...{ isPartial: !isWhole, isTooLongToKeep: bytes > maxKeptBytes },
    },
  }
}
