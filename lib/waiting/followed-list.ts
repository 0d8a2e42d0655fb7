/**
 * A copy of a list that others change too. Every change of an entry gets a version above all earlier ones, and versions appear
 * in the order in which changes become readable; so a reader that asks for everything above its own version misses nothing.
 * Reads run one at a time. What this process writes itself is put into the copy at once, and everything since the write began
 * is read again: a page that was asked for before could otherwise put an older state back, or the write's own answer could hide
 * a change that another process made right after it.
 */
interface FollowedListOptions<Entry> {
  /** Entries whose version is above the given one, in the order of their versions. */
  readonly read: (version: number, limit: number) => Promise<readonly Entry[]>
  /** Puts an entry into the copy. The same one may come more than once. */
  readonly take: (entry: Entry) => void
  readonly pageSize?: number
}

export class FollowedList<Entry extends { readonly version: number }> {
  readonly #options: FollowedListOptions<Entry>
  #version = 0
  #writes = 0
  #reading: Promise<void> | null = null
  #next: Promise<void> | null = null

  constructor(options: FollowedListOptions<Entry>) {
    this.#options = options
  }

  /** What the copy has seen. */
  get version(): number {
    return this.#version
  }

  /** Resolves once everything that could be read when this was called is in the copy. */
  refresh(): Promise<void> {
    if (this.#reading === null) {
      this.#reading = this.#readAll().finally(() => {
        this.#reading = null
      })
      return this.#reading
    }
    // The read under way may have passed the newest change already.
    this.#next ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#next = null
        return this.refresh()
      })
    return this.#next
  }

  /** A change by this process: `put` is called with what the store answered, as soon as it has. */
  async write<Answer>(act: () => Promise<Answer>, put: (answer: Answer) => void): Promise<Answer> {
    const before = this.#version
    const answer = await act()
    put(answer)
    this.#writes++
    this.#version = Math.min(this.#version, before)
    return answer
  }

  async #readAll(): Promise<void> {
    const { read, take, pageSize = 1000 } = this.#options
    while (true) {
      const writes = this.#writes
      const page = await read(this.#version, pageSize)
      if (writes !== this.#writes) continue
      for (const entry of page) {
        take(entry)
        this.#version = entry.version
      }
      if (page.length < pageSize) return
    }
  }
}
