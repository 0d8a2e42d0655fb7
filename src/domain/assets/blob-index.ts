/**
 * Which stored object holds the bytes of which hash. For stores of bytes that name their objects freely, and that several processes
 * share: a row of the index orders keeping and removing of the same bytes, wherever they happen.
 */
export interface StoredObject {
  readonly objectKey: string
  readonly sizeBytes: number
}

interface RemovalQuestion {
  /** Asked while nobody can keep the same bytes. */
  readonly isKnown: () => Promise<boolean>
  readonly now: Date
}

export interface BlobIndex {
  find(hash: string): Promise<StoredObject | null>
  /** Records the object, unless another one holds these bytes already; returns the one that is recorded. May be repeated. */
  keep(hash: string, object: StoredObject, now: Date): Promise<StoredObject>
  /** The same, and in place of an object that turned out to be bad, which becomes garbage. */
  replace(hash: string, object: StoredObject, past: { readonly bad: string; readonly now: Date }): Promise<StoredObject>
  /** Says that the bytes are wanted again; null when they are not recorded. */
  touch(hash: string, now: Date): Promise<StoredObject | null>
  /**
   * Lets go of bytes unless they are known: their object becomes garbage. Whoever keeps the same bytes meanwhile waits, and then
   * records an object of its own.
   */
  remove(hash: string, question: RemovalQuestion): Promise<void>
  /** Every recorded hash, in portions. */
  list(): AsyncIterable<readonly string[]>
  /** Objects that were let go of before then. */
  garbage(before: Date, limit: number): Promise<string[]>
  forgetGarbage(objectKeys: readonly string[]): Promise<void>
  /** Makes objects garbage as of now, also those that are garbage already: they could not be removed and are tried again later. */
  throwAway(objectKeys: readonly string[], now: Date): Promise<void>
  /** The hash whose bytes this object holds; null: it is not recorded. */
  hashOf(objectKey: string): Promise<string | null>
  /** Which of these objects are recorded, or waiting as garbage. */
  knownObjects(objectKeys: readonly string[]): Promise<string[]>
}
