/**
 * Removes objects that nobody can want any more: those that the index has let go of, after a grace, and those that never came
 * into it because a process died in between. The latter are found by listing each day's objects once, two days later: no upload
 * takes as long.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { BlobIndex } from '../../../domain/assets/blob-index.ts'
import type { Bucket } from './bucket.ts'
import { OBJECTS } from './s3-blobs.ts'

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
const SWEPT_AFTER_DAYS = 2
// After a pause as long as this, what is older is left to the operator.
const MAX_DAYS = 30

export function createObjectCollector(deps: CollectDeps): ObjectCollector {
  const { bucket, prefix, index, clock, log, graceMs, marks } = deps

  async function removeAll(keys: readonly string[]): Promise<void> {
    for (const key of keys) await bucket.remove(key)
  }

  async function sweepDay(day: string, signal: AbortSignal): Promise<number> {
    let swept = 0
    for await (const objects of bucket.list(`${prefix}${OBJECTS}${day}/`)) {
      if (signal.aborted) return swept
      const keys = objects.map(({ key }) => key)
      const wanted = new Set(await index.knownObjects(keys))
      const orphans = keys.filter((key) => !wanted.has(key))
      await removeAll(orphans)
      swept += orphans.length
    }
    return swept
  }

  async function abandonUploads(before: Date, signal: AbortSignal): Promise<number> {
    let abandoned = 0
    for await (const uploads of bucket.listUploads(`${prefix}${OBJECTS}`)) {
      for (const { key, uploadId, begunAt } of uploads) {
        if (signal.aborted) return abandoned
        if (!(begunAt < before) || uploadId === '') continue
        await bucket.abandonUpload(key, uploadId)
        abandoned++
      }
    }
    return abandoned
  }

  return {
    async removeGarbage(signal) {
      let removed = 0
      while (!signal.aborted) {
        const keys = await index.garbage(new Date(clock.now().getTime() - graceMs), PORTION)
        await removeAll(keys)
        // Only now: a crash in between removes them once more, and that is harmless.
        await index.forgetGarbage(keys)
        removed += keys.length
        if (keys.length < PORTION) break
      }
      if (removed > 0) log.info({ removed }, 'removed objects that nothing refers to')
      return removed
    },
    async sweepOrphans(signal) {
      const last = toDay(clock.now(), -SWEPT_AFTER_DAYS)
      const marked = await marks.read()
      if (marked !== null && marked >= last) return 0
      const oldest = toDay(clock.now(), -SWEPT_AFTER_DAYS - MAX_DAYS)
      const from = marked === null || marked < oldest ? oldest : toDay(new Date(`${marked}T00:00:00Z`), 1)
      let swept = await abandonUploads(new Date(clock.now().getTime() - SWEPT_AFTER_DAYS * DAY_MS), signal)
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

function toDay(date: Date, days: number): string {
  return new Date(date.getTime() + days * DAY_MS).toISOString().slice(0, 10)
}
