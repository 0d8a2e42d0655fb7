/**
 * What an attempt at a job took of a server: how long the server computed, of that how long nodes of each class, and which weights
 * it was for. A server says itself how long it computed, when the run comes to its end there. Of a run that ends otherwise the
 * time counts from the first news of its nodes until nobody waited for it any more.
 */
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import type { NodeSpan } from './record/run-record.ts'

export interface GpuUse {
  readonly ms: number
  /** By node class, at most `ms` together: the rest is what the server did between nodes, or nobody saw. */
  readonly classes: Readonly<Record<string, number>>
  /** The files that the graph loads. */
  readonly weights: readonly string[]
}

// A graph has up to 20,000 nodes, of a handful of classes and files.
const MAX_CLASSES = 64
const MAX_WEIGHTS = 64
const MAX_NAME_LENGTH = 300

export class GpuMeter {
  /** When the run began that another process followed before; null: it begins here. */
  readonly #adoptedSinceMs: number | null
  #followedSinceMs: number | null = null
  #computesSinceMs: number | null = null
  #tookMs: number | null = null
  #endedAtMs: number | null = null

  constructor(adoptedSinceMs: number | null) {
    this.#adoptedSinceMs = adoptedSinceMs
  }

  take(event: EngineEvent, nowMs: number): void {
    switch (event.type) {
      case 'started':
        this.#followedSinceMs ??= this.#adoptedSinceMs ?? nowMs
        break
      case 'succeeded':
      case 'failed':
      case 'interrupted':
        this.#endedAtMs ??= nowMs
        this.#tookMs ??= event.computedMs ?? null
        break
      default:
        this.#computesSinceMs ??= this.#adoptedSinceMs ?? nowMs
    }
  }

  /** `nowMs`: until then it was waited for. */
  read(nowMs: number): number {
    if (this.#tookMs !== null) return Math.round(this.#tookMs)
    const sinceMs = this.#computesSinceMs ?? this.#followedSinceMs
    return sinceMs === null ? 0 : Math.max(0, Math.round((this.#endedAtMs ?? nowMs) - sinceMs))
  }
}

interface Nodes {
  readonly spans: readonly NodeSpan[]
  classOf(nodeId: string): string | null
  readonly nowMs: number
}

/** How long nodes ran, by class. */
export function sumClasses({ spans, classOf, nowMs }: Nodes): GpuUse['classes'] {
  const found = new Map<string, number>()
  for (const { nodeId, startedAtMs, endedAtMs } of spans) {
    const classType = classOf(nodeId)
    if (startedAtMs === null || classType === null) continue
    found.set(classType, (found.get(classType) ?? 0) + Math.max(0, (endedAtMs ?? nowMs) - startedAtMs))
  }
  return Object.fromEntries(found)
}

/**
 * What is kept of it, whoever said it: an attempt computes for no longer than it lasts, and its nodes for no longer than it computes
 * (nodes may run at the same time, and our clock is not the server's). Of many classes those that took most are named.
 */
export function toKeptUse({ ms, classes, weights }: GpuUse, lastedMs: number): GpuUse {
  const computedMs = Math.max(0, Math.min(Math.round(ms), lastedMs))
  const sum = Object.values(classes).reduce((total, each) => total + each, 0)
  const scale = sum > computedMs ? computedMs / sum : 1
  const most = Object.entries(classes).toSorted(([, one], [, other]) => other - one)
  const named = most.slice(0, MAX_CLASSES).map(([name, took]) => [toName(name), Math.floor(took * scale)] as const)
  return {
    ms: computedMs,
    classes: Object.fromEntries(named.filter(([, took]) => took > 0)),
    weights: [...new Set(weights.slice(0, MAX_WEIGHTS).map(toName))],
  }
}

/** Postgres cannot read every text that JSON can hold. */
function toName(text: string): string {
  return text.slice(0, MAX_NAME_LENGTH).toWellFormed().replaceAll('\0', '')
}

interface UnseenRun {
  readonly engineId: string | null
  readonly startedAt: Date | null
  /** null: the engine takes whatever waits, as the built-in one does. */
  readonly foreseenMs: number | null
}

const BUILT_IN = /^embedded(?:-[0-9a-f]{8})?(?:@|$)/

/** Of a run whose process is gone: it counts for as long as it was held. null: it was on no server. */
export function unseenUse({ engineId, startedAt, foreseenMs }: UnseenRun, until: Date): GpuUse | null {
  if (startedAt === null || foreseenMs === null || engineId === null || BUILT_IN.test(engineId)) return null
  return { ms: Math.max(0, until.getTime() - startedAt.getTime()), classes: {}, weights: [] }
}
