/**
 * A map and a set of bounded size. Beyond the bound the entry that was set the longest ago is dropped; setting a key again makes it
 * the newest, reading it changes nothing. For values that can be found out again, or become useless after a while.
 */
export class BoundedMap<Key, Value> {
  // A Map keeps the order of insertion, so its first key is the oldest.
  readonly #entries = new Map<Key, Value>()
  readonly #maxSize: number
  // Goes on from one dropped entry to the next. Deleted entries stay in a Map's table for a while, and an iterator that began at the
  // front for every dropped entry would step over all of them again: tens of microseconds in a large map.
  #oldest: MapIterator<Key> | null = null
  #setsSinceDrop = 0

  constructor(maxSize: number) {
    if (!(maxSize >= 1)) throw new RangeError('a bounded map holds at least one entry')
    this.#maxSize = maxSize
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.#maxSize) this.#dropOldest()
    // An iterator at rest keeps every table alive that the Map has used since.
    else if (this.#oldest !== null && ++this.#setsSinceDrop > this.#maxSize) this.#oldest = null
  }

  #dropOldest(): void {
    this.#setsSinceDrop = 0
    this.#oldest ??= this.#entries.keys()
    const { value, done } = this.#oldest.next()
    if (done !== true) this.#entries.delete(value)
  }

  /** False when it was not there. */
  delete(key: Key): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** From the oldest to the newest. */
  values(): IterableIterator<Value> {
    return this.#entries.values()
  }
}

export class BoundedSet<Value> {
  readonly #members: BoundedMap<Value, true>

  constructor(maxSize: number) {
    this.#members = new BoundedMap(maxSize)
  }

  get size(): number {
    return this.#members.size
  }

  has(value: Value): boolean {
    return this.#members.has(value)
  }

  add(value: Value): void {
    this.#members.set(value, true)
  }

  /** False when it was not there. */
  delete(value: Value): boolean {
    return this.#members.delete(value)
  }
}
