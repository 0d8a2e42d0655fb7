/**
 * Files that a run has announced and that are not stored yet. A client asks for a file as soon as it is told of it, a few
 * milliseconds before it can be read: such a request waits for the next change of the job instead of being refused.
 */
import type { EventBus, JobLive } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'

export interface AnnouncedFiles extends Disposable {
  /** Resolves at the next change of the job that announced the file; false when none did, or time is up. */
  waitFor(file: { readonly accountId: string; readonly folder: string; readonly name: string }): Promise<boolean>
}

const MAX_FILES = 10_000
const WAIT_MS = 5000

interface AnnouncedFile {
  readonly jobId: string
  waiting: (() => void)[]
}

export function createAnnouncedFiles(bus: Pick<EventBus<LiveEvent>, 'onLive' | 'onChanged'>): AnnouncedFiles {
  const announced = new Map<string, AnnouncedFile>()
  const byJob = new Map<string, Set<string>>()

  function announce(key: string, jobId: string): void {
    announced.set(key, { jobId, waiting: announced.get(key)?.waiting ?? [] })
    const keys = byJob.get(jobId) ?? new Set()
    byJob.set(jobId, keys.add(key))
    // A job whose end is never told would keep its files here: the oldest ones make room.
    const [oldest] = announced.keys()
    if (announced.size > MAX_FILES && oldest !== undefined) forget(announced.get(oldest)?.jobId ?? '')
  }

  function wake(jobId: string): void {
    for (const key of byJob.get(jobId) ?? []) {
      const entry = announced.get(key)
      for (const resolve of entry?.waiting.splice(0) ?? []) resolve()
    }
  }

  function forget(jobId: string): void {
    wake(jobId)
    for (const key of byJob.get(jobId) ?? []) if (announced.get(key)?.jobId === jobId) announced.delete(key)
    byJob.delete(jobId)
  }

  const stopLive = bus.onLive('published_here', hear)

  function hear({ jobId, accountId, event }: JobLive<LiveEvent>): void {
    if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') forget(jobId)
    if (event.type !== 'node_report') return
    for (const items of Object.values(event.report)) {
      for (const item of items) {
        if (item.kind === 'file') announce(`${accountId}/${item.folder}/${item.filename}`, jobId)
      }
    }
  }
  const stopChanged = bus.onChanged(({ jobId }) => wake(jobId))

  return {
    async waitFor({ accountId, folder, name }) {
      const entry = announced.get(`${accountId}/${folder}/${name}`)
      if (entry === undefined) return false
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const timer = setTimeout(() => resolve(false), WAIT_MS)
      entry.waiting.push(() => resolve(true))
      const isChanged = await promise
      clearTimeout(timer)
      return isChanged
    },
    [Symbol.dispose]() {
      stopLive()
      stopChanged()
      for (const jobId of byJob.keys()) wake(jobId)
    },
  }
}
