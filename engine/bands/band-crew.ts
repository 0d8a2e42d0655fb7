/**
 * A compute thread and its helpers. Large work on rows is cut into bands, which all of them take until none is left. The compute
 * thread waits only for bands that a helper has begun, so helpers that get no processor cost nothing. Who writes a
 * band makes no difference to the result. Helpers are started at the first large work and end with their compute thread.
 */
import { Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/garbage.ts'
import { NodeError } from '../node/node-error.ts'
import { openRows, type RowJob } from '../tensor/rows/row-jobs.ts'
import {
  BAND,
  type Board,
  bandCount,
  bandState,
  beatsOf,
  type CorePlaces,
  closeBoard,
  countIdle,
  createBoard,
  freePlace,
  moveBand,
  setBand,
  takeBands,
  takePlace,
  waitForBand,
  writeBand,
} from './band-board.ts'
import type { ToHelper } from './band-thread.ts'

interface BandCrewDeps {
  readonly places: CorePlaces
  /** Under which number this thread takes places. */
  readonly owner: number
  readonly openHelper?: () => Worker
  /** Work on fewer values is done alone. */
  readonly leastValues?: number
  /** After so long without a sign of life helpers are given up. */
  readonly silentMs?: number
}

// A picture of 1024 × 1024, read and written. Below that, waking a helper costs about as much as it saves.
const LEAST_VALUES = 6_000_000
// Enough for threads of different speeds to end at about the same time.
const BANDS_EACH = 8
const LOOK_EVERY_MS = 20
// A row takes milliseconds at most. A helper that was silent for so long has died in a way that it could not tell.
const SILENT_MS = 30_000
const MAX_DEATHS = 3
// What the loops keep of tables; rows and tensors lie elsewhere.
const HEAP_MB = 64

const openBandThread = () =>
  new Worker(new URL('./band-thread.ts', import.meta.url), { name: 'band', resourceLimits: toHeapLimits(HEAP_MB) })

export class BandCrew {
  readonly #deps: BandCrewDeps
  readonly #openHelper: () => Worker
  readonly #leastValues: number
  readonly #silentMs: number
  readonly #helpers = new Set<Worker>()
  #ending: Promise<unknown> = Promise.resolve()
  #deaths = 0

  constructor(deps: BandCrewDeps) {
    this.#deps = deps
    this.#openHelper = deps.openHelper ?? openBandThread
    this.#leastValues = deps.leastValues ?? LEAST_VALUES
    this.#silentMs = deps.silentMs ?? SILENT_MS
  }

  shareRows(job: RowJob, checkpoint: () => void): boolean {
    const mostBands = Math.floor(job.rows / job.leastRows)
    if (job.values < this.#leastValues || mostBands < 2) return false
    const helping = this.#gather()
    if (helping.length === 0) return false
    const board = createBoard(job.rows, Math.min(BANDS_EACH * (helping.length + 1), mostBands))
    this.#callHelpers(helping, job, board)
    let isWhole: boolean
    try {
      isWhole = this.#workOn(job, board, checkpoint)
    } catch (error) {
      this.#stopHelpers(board)
      throw error
    }
    if (!isWhole) throw new NodeError('RuntimeError', 'a helper of the compute thread stopped working; it was ended')
    return true
  }

  /** Resolves when no helper can write any more into memory of work that is over. */
  settled(): Promise<unknown> {
    return this.#ending
  }

  collectGarbage(): void {
    for (const helper of this.#helpers) helper.postMessage({ type: 'collect' } satisfies ToHelper)
  }

  #open(): void {
    const helper = this.#openHelper()
    this.#helpers.add(helper)
    // Whatever it died of, it has given its band back; 'exit' follows.
    helper.on('error', () => {})
    helper.on('exit', () => {
      this.#helpers.delete(helper)
      freePlace(this.#deps.places, this.#deps.owner)
      this.#deaths += 1
    })
  }

  #gather(): readonly Worker[] {
    const { places, owner } = this.#deps
    const wanted = countIdle(places)
    while (this.#helpers.size < wanted && this.#deaths < MAX_DEATHS && takePlace(places, owner)) this.#open()
    return [...this.#helpers].slice(0, wanted)
  }

  #callHelpers(helping: readonly Worker[], job: RowJob, board: Board): void {
    for (const [index, helper] of helping.entries()) {
      // Each begins at a place of its own and goes upwards from there.
      const first = Math.floor((bandCount(board) * (index + 1)) / (helping.length + 1))
      helper.postMessage({ type: 'help', job, board, first } satisfies ToHelper)
    }
  }

  /** Waits until no helper has the band in hand. False when the helpers had to be given up. */
  #awaitBand(board: Board, band: number, look: () => void): boolean {
    let [beats, since] = [beatsOf(board), performance.now()]
    while (bandState(board, band) === BAND.helped) {
      look()
      waitForBand(board, band, LOOK_EVERY_MS)
      const now = beatsOf(board)
      if (now !== beats) [beats, since] = [now, performance.now()]
      else if (performance.now() - since > this.#silentMs) return this.#endHelpers()
    }
    return true
  }

  /** One might go on after all: the call must not be over, and its memory with others, before they have ended. */
  #endHelpers(): false {
    this.#ending = Promise.all([this.#ending, ...[...this.#helpers].map((helper) => helper.terminate())])
    return false
  }

  /** False when the helpers had to be given up. */
  #workOn(job: RowJob, board: Board, checkpoint: () => void): boolean {
    using loop = openRows(job)
    const mayGoOn = () => {
      checkpoint()
      return true
    }
    for (const band of takeBands(board, 0, BAND.own)) {
      writeBand(board, band, loop, mayGoOn)
      setBand(board, band, BAND.done)
    }
    for (let band = 0; band < bandCount(board); band++) {
      if (!this.#awaitBand(board, band, checkpoint)) return false
      if (moveBand(board, band, BAND.left, BAND.own)) writeBand(board, band, loop, mayGoOn)
    }
    return true
  }

  /** After a failure or a cancel: returns once no helper writes any more, unless they had to be given up. */
  #stopHelpers(board: Board): void {
    closeBoard(board)
    for (let band = 0; band < bandCount(board); band++) if (!this.#awaitBand(board, band, () => {})) return
  }
}
