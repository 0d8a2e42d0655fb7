/**
 * The shared memory in which several threads divide one piece of work on rows. Its rows are cut into bands; each band has one word
 * that says whether it is free, whom it belongs to, and whether it is done. A band is taken by a compare-and-exchange, so
 * exactly one thread writes it, and a thread that never gets a processor takes none.
 */
import type { RowLoop } from '../tensor/rows/row-loop.ts'

export interface Board {
  readonly words: Int32Array<SharedArrayBuffer>
  readonly rows: number
  readonly bandRows: number
}

/** How a band is doing. `left`: a helper could not finish it, so somebody else has to do it from its beginning. */
export const BAND = { free: 0, own: 1, helped: 2, done: 3, left: 4, closed: 5 } as const

const IS_CLOSED = 0
const BEATS = 1
const FIRST_BAND = 2

export function createBoard(rows: number, bands: number): Board {
  const bandRows = Math.ceil(rows / bands)
  const wordCount = FIRST_BAND + Math.ceil(rows / bandRows)
  return { words: new Int32Array(new SharedArrayBuffer(wordCount * 4)), rows, bandRows }
}

export const bandCount = ({ words }: Board) => words.length - FIRST_BAND

export const bandState = ({ words }: Board, band: number) => Atomics.load(words, FIRST_BAND + band)

/** Tells whoever waits for the band. */
export function setBand({ words }: Board, band: number, state: number): void {
  Atomics.store(words, FIRST_BAND + band, state)
  Atomics.notify(words, FIRST_BAND + band)
}

/** True when the band was in the first state and is now in the second. */
export function moveBand({ words }: Board, band: number, from: number, to: number): boolean {
  return Atomics.compareExchange(words, FIRST_BAND + band, from, to) === from
}

/** Takes one free band after the other, from `first` on and round to it: neighbours share what was computed for their edges. */
export function* takeBands(board: Board, first: number, as: number): Generator<number, void, undefined> {
  const count = bandCount(board)
  for (let index = 0; index < count; index++) {
    const band = (first + index) % count
    if (moveBand(board, band, BAND.free, as)) yield band
  }
}

/** Writes a band; `mayGoOn` is asked before every row. False when it was told to stop. */
export function writeBand({ rows, bandRows }: Board, band: number, loop: RowLoop, mayGoOn: () => boolean): boolean {
  const end = Math.min(rows, (band + 1) * bandRows)
  for (let row = band * bandRows; row < end; row++) {
    if (!mayGoOn()) return false
    loop.writeRow(row)
  }
  return true
}

/** From now on no band is taken, and helpers stop before their next row. */
export function closeBoard(board: Board): void {
  Atomics.store(board.words, IS_CLOSED, 1)
  for (let band = 0; band < bandCount(board); band++) moveBand(board, band, BAND.free, BAND.closed)
}

/** A helper shows that it lives; false when it should stop. */
export function beat({ words }: Board): boolean {
  Atomics.add(words, BEATS, 1)
  return Atomics.load(words, IS_CLOSED) === 0
}

export const beatsOf = ({ words }: Board) => Atomics.load(words, BEATS)

/** Returns when the band is no longer in the hands of a helper, or after `limitMs`. */
export function waitForBand({ words }: Board, band: number, limitMs: number): void {
  Atomics.wait(words, FIRST_BAND + band, BAND.helped, limitMs)
}

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
