/**
 * Removes objects that are no longer needed: those that the index has released, after a grace, and those that were never entered
 * into it because a process died in between. The latter are found by listing each day's objects once, when the youngest of them is
 * two days old: no upload takes that long. An object that cannot be removed is tried again later and does not block the others.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { BlobIndex } from '../../../domain/assets/blob-index.ts'
import type { Bucket } from './bucket.ts'
import { OBJECTS } from './s3-blobs.ts'
import { mayPass } from './s3-error.ts'

interface CollectDeps {
  readonly bucket: Bucket
  readonly prefix: string
  readonly index: BlobIndex
  readonly clock: Clock
  readonly log: Log
  readonly graceMs: number
  readonly marks: SweepMarks
}

/** Where the sweep has come to: a day like `2026-01-31`. */
interface SweepMarks {
  read(): Promise<string | null>
  write(day: string): Promise<void>
}

interface ObjectCollector {
  /** Returns how many objects went. */
  removeGarbage(signal: AbortSignal): Promise<number>
  /** Returns how many objects and unfinished uploads went. */
  sweepOrphans(signal: AbortSignal): Promise<number>
}

const PORTION = 200
const DAY_MS = 86_400_000
const SWEPT_AFTER_MS = 2 * DAY_MS
// Storage that fails so often in a row is away.
const MAX_FAILURES_IN_A_ROW = 3
// After a pause as long as this, what is older is left to the operator.
const MAX_DAYS = 30

export function createObjectCollector(deps: CollectDeps): ObjectCollector {
  const { bucket, prefix, index, clock, log, graceMs, marks } = deps

  /** Returns those that went. The others become garbage as of now. */
  async function removeAll(keys: readonly string[]): Promise<string[]> {
    const failed = new Set(await forEach(keys, (key) => bucket.remove(key), log))
    await index.throwAway([...failed], clock.now())
    return keys.filter((key) => !failed.has(key))
  }

  async function sweepDay(day: string, signal: AbortSignal): Promise<number> {
    let swept = 0
    for await (const objects of bucket.list(`${prefix}${OBJECTS}${day}/`)) {
      if (signal.aborted) return swept
      const keys = objects.map(({ key }) => key)
      const wanted = new Set(await index.knownObjects(keys))
      swept += (await removeAll(keys.filter((key) => !wanted.has(key)))).length
    }
    return swept
  }

  async function abandonUploads(before: Date, signal: AbortSignal): Promise<number> {
    let abandoned = 0
    for await (const uploads of bucket.listUploads(`${prefix}${OBJECTS}`)) {
      if (signal.aborted) return abandoned
      const old = uploads.filter(({ uploadId, begunAt }) => begunAt < before && uploadId !== '')
      const failed = await forEach(old, ({ key, uploadId }) => bucket.abandonUpload(key, uploadId), log)
      abandoned += old.length - failed.length
    }
    return abandoned
  }

  return {
    async removeGarbage(signal) {
      let removed = 0
      while (!signal.aborted) {
        const keys = await index.garbage(new Date(clock.now().getTime() - graceMs), PORTION)
        const gone = await removeAll(keys)
        // Only now: a crash in between removes them once more, and that is harmless.
        await index.forgetGarbage(gone)
        removed += gone.length
        if (keys.length < PORTION) break
      }
      if (removed > 0) log.info({ removed }, 'removed objects that nothing refers to')
      return removed
    },
    async sweepOrphans(signal) {
      // The last day whose youngest object is old enough.
      const before = new Date(clock.now().getTime() - SWEPT_AFTER_MS)
      const last = toDay(before, -1)
      const marked = await marks.read()
      if (marked !== null && marked >= last) return 0
      const oldest = toDay(before, -1 - MAX_DAYS)
      const from = marked === null || marked < oldest ? oldest : toDay(new Date(`${marked}T00:00:00Z`), 1)
      let swept = await abandonUploads(before, signal)
      for (let day = from; day <= last; day = toDay(new Date(`${day}T00:00:00Z`), 1)) {
        swept += await sweepDay(day, signal)
        if (signal.aborted) return swept
        await marks.write(day)
      }
      if (swept > 0) log.info({ swept }, 'removed objects of uploads that never ended')
      return swept
    },
  }
}

/** Does it to each and returns those where it failed; throws when storage seems to be away. */
async function forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>, log: Log): Promise<Item[]> {
  const failed: Item[] = []
  let inARow = 0
  for (const item of items) {
    try {
      await work(item)
      inARow = 0
    } catch (error) {
      failed.push(item)
      if (mayPass(error) && (++inARow === MAX_FAILURES_IN_A_ROW || failed.length === items.length)) throw error
      log.error({ err: error, item }, 'something in the bucket could not be removed; it is tried again later')
    }
  }
  return failed
}

function toDay(date: Date, days: number): string {
  return new Date(date.getTime() + days * DAY_MS).toISOString().slice(0, 10)
}
