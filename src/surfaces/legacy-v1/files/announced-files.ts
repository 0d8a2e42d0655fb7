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

export class AnnouncedFiles implements Disposable {
  readonly #deps: AnnouncedDeps
  readonly #announced = new Map<string, AnnouncedFile>()
  readonly #byJob = new Map<string, Set<string>>()
  readonly #followed = new Map<string, Followed>()
  /** Requests for files that were not announced yet. */
  readonly #expected = new Map<string, (() => void)[]>()
  readonly #stops: readonly Unsubscribe[]

  constructor(deps: AnnouncedDeps) {
    this.#deps = deps
    this.#stops = [
      deps.bus.onLive('published_here', (notice) => this.#hear(notice)),
      deps.bus.onChanged(({ jobId }) => this.#wake(jobId)),
    ]
  }

  /** Looks, and looks again whenever that may help: while a run that announced the file goes on. null: it was not found. */
  async find<Found>({ accountId, folder, name }: FileName, look: () => Promise<Found | null>): Promise<Found | null> {
    const key = `${accountId}/${folder}/${name}`
    // What lies in the folder of inputs was uploaded, and no run elsewhere is about to store it.
    let hasAsked = !this.#deps.bus.hasOthers || folder === 'input'
    for (;;) {
      const entry = this.#announced.get(key)
      const changes = entry?.changes
      const found = await look()
      if (found !== null) return found
      // Its run may have stored it, or ended, while it was looked for.
      if (this.#announced.get(key) !== entry || entry?.changes !== changes) continue
      if (entry !== undefined) {
        if (!(await this.#nextChange(entry))) return null
      } else if (hasAsked) return null
      else {
        await this.#askElsewhere(accountId, key)
        hasAsked = true
      }
    }
  }

  [Symbol.dispose](): void {
    for (const stop of this.#stops) stop()
    for (const accountId of [...this.#followed.keys()]) this.#unfollow(accountId)
    for (const jobId of this.#byJob.keys()) this.#wake(jobId)
  }

  #announce(key: string, jobId: string): void {
    this.#announced.set(key, { jobId, changes: 0, waiting: this.#announced.get(key)?.waiting ?? [] })
    const keys = this.#byJob.get(jobId) ?? new Set()
    this.#byJob.set(jobId, keys.add(key))
    for (const resolve of this.#expected.get(key) ?? []) resolve()
    // A job whose end is never told would keep its files here: the oldest ones make room.
    const [oldest] = this.#announced.keys()
    if (this.#announced.size > MAX_FILES && oldest !== undefined) this.#forget(this.#announced.get(oldest)?.jobId ?? '')
  }

  #wake(jobId: string): void {
    for (const key of this.#byJob.get(jobId) ?? []) {
      const entry = this.#announced.get(key)
      if (entry === undefined) continue
      entry.changes += 1
      for (const resolve of entry.waiting.splice(0)) resolve()
    }
  }

  #forget(jobId: string): void {
    this.#wake(jobId)
    for (const key of this.#byJob.get(jobId) ?? [])
      if (this.#announced.get(key)?.jobId === jobId) this.#announced.delete(key)
    this.#byJob.delete(jobId)
  }

  #hear({ jobId, accountId, event }: JobLive<LiveEvent>): void {
    if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') this.#forget(jobId)
    if (event.type !== 'node_report') return
    for (const items of Object.values(event.report)) {
      for (const item of items) {
        if (item.kind === 'file') this.#announce(`${accountId}/${item.folder}/${item.filename}`, jobId)
      }
    }
  }

  #follow(accountId: string): void {
    const known = this.#followed.get(accountId)
    if (known !== undefined) clearTimeout(known.timer)
    const stop = known?.stop ?? this.#deps.bus.onLive({ accountId }, (notice) => this.#hear(notice))
    this.#followed.delete(accountId)
    this.#followed.set(accountId, { stop, timer: setTimeout(() => this.#unfollow(accountId), FOLLOW_MS) })
    const [oldest] = this.#followed.keys()
    if (this.#followed.size > MAX_FOLLOWED && oldest !== undefined) this.#unfollow(oldest)
  }

  #unfollow(accountId: string): void {
    const known = this.#followed.get(accountId)
    if (known === undefined) return
    clearTimeout(known.timer)
    known.stop()
    this.#followed.delete(accountId)
  }

  /** Resolves when a run elsewhere has announced the file, or none will. */
  async #askElsewhere(accountId: string, key: string): Promise<void> {
    this.#follow(accountId)
    if (this.#announced.has(key)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = this.#expected.get(key) ?? []
    this.#expected.set(key, waiting)
    waiting.push(resolve)
    const timer = setTimeout(resolve, ELSEWHERE_MS)
    const isRunning = ((await this.#deps.countJobs(accountId).catch(() => null))?.running ?? 0) > 0
    if (isRunning) await promise
    clearTimeout(timer)
    waiting.splice(waiting.indexOf(resolve), 1)
    if (waiting.length === 0) this.#expected.delete(key)
  }

  /** False when time is up. */
  async #nextChange(entry: AnnouncedFile): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(false), WAIT_MS)
    entry.waiting.push(() => resolve(true))
    const isChanged = await promise
    clearTimeout(timer)
    return isChanged
  }
}
