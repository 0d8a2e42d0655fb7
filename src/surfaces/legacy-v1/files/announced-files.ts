/**
 * Files that a run has announced and that are not stored yet. A client asks for a file as soon as it is told of it, a few
 * milliseconds before it can be read: such a request waits for the next change of the job instead of being refused. The run may
 * be in another process, and the client may have been told by a third one: then what the runs of the account have announced
 * elsewhere is asked for first.
 */
import type { EventBus, JobLive, Unsubscribe } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'

interface FileName {
  readonly accountId: string
  readonly folder: string
  readonly name: string
}

export interface AnnouncedFiles extends Disposable {
  /** Looks, and looks again whenever that may help: while a run that announced the file goes on. null: it was not found. */
  find<Found>(file: FileName, look: () => Promise<Found | null>): Promise<Found | null>
}

interface AnnouncedDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'onLive' | 'onChanged' | 'hasOthers'>
  /** Jobs of an account that are running; null: there is no such account. */
  readonly countJobs: (accountId: string) => Promise<{ readonly running: number } | null>
}

const MAX_FILES = 10_000
const WAIT_MS = 5000
/** What other processes have announced is here within a few milliseconds, a new connection included. */
const ELSEWHERE_MS = 500
/** How long this process listens to an account's runs after a request for a file that it does not know. */
const FOLLOW_MS = 60_000
const MAX_FOLLOWED = 1000

interface AnnouncedFile {
  readonly jobId: string
  /** How often the job has changed since. */
  changes: number
  waiting: (() => void)[]
}

interface Followed {
  readonly stop: Unsubscribe
  timer: NodeJS.Timeout
}

export function createAnnouncedFiles({ bus, countJobs }: AnnouncedDeps): AnnouncedFiles {
  const announced = new Map<string, AnnouncedFile>()
  const byJob = new Map<string, Set<string>>()
  const followed = new Map<string, Followed>()
  /** Requests for files that were not announced yet. */
  const expected = new Map<string, (() => void)[]>()

  function announce(key: string, jobId: string): void {
    announced.set(key, { jobId, changes: 0, waiting: announced.get(key)?.waiting ?? [] })
    const keys = byJob.get(jobId) ?? new Set()
    byJob.set(jobId, keys.add(key))
    for (const resolve of expected.get(key) ?? []) resolve()
    // A job whose end is never told would keep its files here: the oldest ones make room.
    const [oldest] = announced.keys()
    if (announced.size > MAX_FILES && oldest !== undefined) forget(announced.get(oldest)?.jobId ?? '')
  }

  function wake(jobId: string): void {
    for (const key of byJob.get(jobId) ?? []) {
      const entry = announced.get(key)
      if (entry === undefined) continue
      entry.changes += 1
      for (const resolve of entry.waiting.splice(0)) resolve()
    }
  }

  function forget(jobId: string): void {
    wake(jobId)
    for (const key of byJob.get(jobId) ?? []) if (announced.get(key)?.jobId === jobId) announced.delete(key)
    byJob.delete(jobId)
  }

  function hear({ jobId, accountId, event }: JobLive<LiveEvent>): void {
    if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') forget(jobId)
    if (event.type !== 'node_report') return
    for (const items of Object.values(event.report)) {
      for (const item of items) {
        if (item.kind === 'file') announce(`${accountId}/${item.folder}/${item.filename}`, jobId)
      }
    }
  }

  function follow(accountId: string): void {
    const known = followed.get(accountId)
    if (known !== undefined) clearTimeout(known.timer)
    const stop = known?.stop ?? bus.onLive({ accountId }, hear)
    followed.delete(accountId)
    followed.set(accountId, { stop, timer: setTimeout(() => unfollow(accountId), FOLLOW_MS) })
    const [oldest] = followed.keys()
    if (followed.size > MAX_FOLLOWED && oldest !== undefined) unfollow(oldest)
  }

  function unfollow(accountId: string): void {
    const known = followed.get(accountId)
    if (known === undefined) return
    clearTimeout(known.timer)
    known.stop()
    followed.delete(accountId)
  }

  /** Resolves when a run elsewhere has announced the file, or none will. */
  async function askElsewhere(accountId: string, key: string): Promise<void> {
    follow(accountId)
    if (announced.has(key)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = expected.get(key) ?? []
    expected.set(key, waiting)
    waiting.push(resolve)
    const timer = setTimeout(resolve, ELSEWHERE_MS)
    const isRunning = ((await countJobs(accountId).catch(() => null))?.running ?? 0) > 0
    if (isRunning) await promise
    clearTimeout(timer)
    waiting.splice(waiting.indexOf(resolve), 1)
    if (waiting.length === 0) expected.delete(key)
  }

  /** False when time is up. */
  async function nextChange(entry: AnnouncedFile): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), WAIT_MS)
    entry.waiting.push(() => resolve(true))
    const isChanged = await promise
    clearTimeout(timer)
    return isChanged
  }

  const stops = [bus.onLive('published_here', hear), bus.onChanged(({ jobId }) => wake(jobId))]

  return {
    async find({ accountId, folder, name }, look) {
      const key = `${accountId}/${folder}/${name}`
      // What lies in the folder of inputs was uploaded, and no run elsewhere is about to store it.
      let hasAsked = !bus.hasOthers || folder === 'input'
      for (;;) {
        const entry = announced.get(key)
        const changes = entry?.changes
        const found = await look()
        if (found !== null) return found
        // Its run may have stored it, or ended, while it was looked for.
        if (announced.get(key) !== entry || entry?.changes !== changes) continue
        if (entry !== undefined) {
          if (!(await nextChange(entry))) return null
        } else if (hasAsked) return null
        else {
          await askElsewhere(accountId, key)
          hasAsked = true
        }
      }
    },
    [Symbol.dispose]() {
      for (const stop of stops) stop()
      for (const accountId of [...followed.keys()]) unfollow(accountId)
      for (const jobId of byJob.keys()) wake(jobId)
    },
  }
}
