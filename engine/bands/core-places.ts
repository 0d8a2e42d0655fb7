/**
 * Shared memory in which the compute threads of one engine agree on helpers: how many of them are at work, and which places for
 * helpers are taken. There is one place fewer than cores, whoever takes them; the engine thread frees those of a thread that ended.
 */
export interface CorePlaces {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly cores: number
}

const BUSY = 0
const FIRST_PLACE = 1
// Beyond that, memory is the limit and not the processor.
const MAX_PLACES = 7

export function createCorePlaces(cores: number): CorePlaces {
  const places = Math.max(0, Math.min(cores - 1, MAX_PLACES))
  return { words: new Int32Array(new SharedArrayBuffer((FIRST_PLACE + places) * 4)), cores }
}

export function showBusy({ words }: CorePlaces, threads: number): void {
  Atomics.store(words, BUSY, threads)
}

/** How many cores no compute thread works on. */
export function countIdle({ words, cores }: CorePlaces): number {
  return Math.max(0, cores - Atomics.load(words, BUSY))
}

/** False when all are taken. */
export function takePlace({ words }: CorePlaces, owner: number): boolean {
  for (let place = FIRST_PLACE; place < words.length; place++) {
    if (Atomics.compareExchange(words, place, 0, owner) === 0) return true
  }
  return false
}

export function freePlace({ words }: CorePlaces, owner: number): boolean {
  for (let place = FIRST_PLACE; place < words.length; place++) {
    if (Atomics.compareExchange(words, place, owner, 0) === owner) return true
  }
  return false
}

export function freeAllPlaces(places: CorePlaces, owner: number): void {
  while (freePlace(places, owner));
}
