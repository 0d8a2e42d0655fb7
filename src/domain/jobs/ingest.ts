/**
 * Turns drafts into outputs: reads the bytes into the blob store, a bounded number at a time, and hands the results on in
 * the order in which they were reported. What comes after a failed one is not handed on: the job fails with that error.
 */
import type { NewId } from '../../lib/ids.ts'
import type { Semaphore } from '../../lib/semaphore.ts'
import type { StoreBlob } from '../assets/store-blob.ts'
import { ServiceError } from '../errors.ts'
import { toJobError } from './end-of-run.ts'
import type { JobError, Output } from './job.ts'
import type { OutputDraft } from './output.ts'

export interface IngestDeps {
  readonly storeBlob: StoreBlob
  readonly newId: NewId
  /** Shared by all runs of a worker. */
  readonly limit: Semaphore
  /** For all outputs of the job together. */
  readonly maxBytes: number
  readonly signal: AbortSignal
  /** What an earlier attempt of the job had made: the same bytes from the same node keep their id. */
  readonly earlier: readonly Output[]
  onReady(output: Output): void
  onError(error: unknown): void
}

export interface Ingest {
  add(draft: OutputDraft): void
  /** Resolves when fewer than `count` are under way. */
  fewerThan(count: number): Promise<void>
}

export function createIngest(deps: IngestDeps): Ingest {
  const earlier = [...deps.earlier]
  let last: Promise<void> = Promise.resolve()
  let underWay = 0
  let bytes = 0
  let hasFailed = false
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []

  async function store(draft: OutputDraft): Promise<Output> {
    deps.signal.throwIfAborted()
    const { signal } = deps
    const maxBytes = Math.max(0, deps.maxBytes - bytes)
    const { hash, sizeBytes } = await deps.storeBlob(draft.read(), { maxBytes, signal })
    bytes += sizeBytes
    const { nodeId, name, type, contentType, place } = draft
    const output = { assetId: takeId(nodeId, hash), nodeId, name, type, contentType, sizeBytes, hash }
    return place === undefined ? output : { ...output, place }
  }

  function takeId(nodeId: string, hash: string): string {
    const at = earlier.findIndex((output) => output.nodeId === nodeId && output.hash === hash)
    const [same] = at === -1 ? [] : earlier.splice(at, 1)
    return same?.assetId ?? deps.newId()
  }

  function settle(): void {
    underWay--
    const free = waiting.filter(({ count }) => underWay < count)
    waiting = waiting.filter(({ count }) => underWay >= count)
    for (const { resolve } of free) resolve()
  }

  return {
    add(draft) {
      underWay++
      const stored = deps.limit(() => store(draft))
      stored.catch(() => {})
      const before = last
      last = (async () => {
        await before
        try {
          const output = await stored
          if (!hasFailed) deps.onReady(output)
        } catch (error) {
          if (!hasFailed) deps.onError(error)
          hasFailed = true
        }
        settle()
      })()
    },
    async fewerThan(count) {
      if (underWay >= count) await new Promise<void>((resolve) => waiting.push({ count, resolve }))
    },
  }
}

/** A disk can be emptied, and crowds disperse: the same job may succeed later, and it is no fault of its own. */
export function isShortOfRoom(error: unknown): boolean {
  return error instanceof ServiceError && (error.refusal === 'storage_full' || error.refusal === 'queue_full')
}

/** What the job's reader is told; the cause stays in our log. */
export function toIngestError(error: unknown): JobError {
  if (error instanceof ServiceError && error.refusal === 'storage_full') {
    return toJobError('storage_full', 'an output could not be kept: the storage is full')
  }
  if (error instanceof ServiceError && error.refusal === 'queue_full') {
    return toJobError('storage_busy', 'an output could not be kept: too much was being stored at once')
  }
  if (error instanceof ServiceError && error.refusal === 'payload_too_large') {
    return toJobError('output_too_large', 'the outputs of the job are larger than this service keeps')
  }
  return toJobError('output_unreadable', 'an output could not be read from the engine')
}
