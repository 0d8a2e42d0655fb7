/**
 * The numbers that the threads of a store share about its log. Every batch that must survive a power cut has a ticket;
 * tickets rise by one and wrap around after four thousand million, so they are compared by their distance.
 */
const NAMES = [
  /** The last ticket whose commit has begun: others may see it from here on. */
  'committing',
  /** The last ticket that the keeper was asked to sync. */
  'handedOver',
  /** The last ticket on disk, by whom it was brought there. */
  'syncedByWriter',
  'syncedByKeeper',
  /** 1 while the keeper can be asked, 2 while it moves the log into the database. */
  'keeper',
  /** Rises with every checkpoint that the keeper is asked for. */
  'checkpoint',
  'stop',
  /** Rises with everything that the keeper is asked: it sleeps on this word. */
  'bell',
] as const

type WordName = (typeof NAMES)[number]

export const WORD = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Readonly<Record<WordName, number>>

export const KEEPER_ABSENT = 0
export const KEEPER_READY = 1
export const KEEPER_CHECKPOINTS = 2

/** Batches of so many operations are worth the way to another thread. */
export const HAND_OVER_FROM = 3

export type LogWords = Int32Array<SharedArrayBuffer>

export function createLogWords(): LogWords {
  return new Int32Array(new SharedArrayBuffer(NAMES.length * Int32Array.BYTES_PER_ELEMENT))
}

/** Whether `ticket` is `other` or came after it. */
export function isAtLeast(ticket: number, other: number): boolean {
  return ((ticket - other) | 0) >= 0
}

export function isSynced(words: LogWords, ticket: number): boolean {
  return (
    isAtLeast(Atomics.load(words, WORD.syncedByWriter), ticket) ||
    isAtLeast(Atomics.load(words, WORD.syncedByKeeper), ticket)
  )
}

export function ring(words: LogWords): void {
  Atomics.add(words, WORD.bell, 1)
  Atomics.notify(words, WORD.bell)
}
