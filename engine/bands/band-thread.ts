/**
 * The entry of a helper thread: belongs to one compute thread, and takes bands of the work that this one shares. It loads the
 * loops over rows and nothing else of the engine.
 */
import { parentPort } from 'node:worker_threads'
import { collectGarbage } from '../../lib/threads/garbage.ts'
import { openRows, type RowJob } from '../tensor/rows/row-jobs.ts'
import type { RowLoop } from '../tensor/rows/row-loop.ts'
import { BAND, type Board, beat, setBand, takeBands, writeBand } from './band-board.ts'

export type ToHelper =
  | { readonly type: 'help'; readonly job: RowJob; readonly board: Board; readonly first: number }
  /** Memory that was shared lives on until nobody holds it. */
  | { readonly type: 'collect' }

/** The band that it has in hand. */
let held: { readonly board: Board; readonly band: number } | null = null

function giveBack(): void {
  if (held !== null) setBand(held.board, held.band, BAND.left)
  held = null
}

function help({ job, board, first }: Extract<ToHelper, { type: 'help' }>): void {
  let loop: RowLoop | null = null
  try {
    for (const band of takeBands(board, first, BAND.helped)) {
      held = { board, band }
      loop ??= openRows(job)
      if (!writeBand(board, band, loop, () => beat(board))) break
      held = null
      setBand(board, band, BAND.done)
    }
  } catch {
    // The compute thread does the band itself, and if it fails there too, says why.
  } finally {
    giveBack()
    loop?.[Symbol.dispose]()
  }
}

process.on('exit', giveBack)
parentPort?.on('message', (message: ToHelper) => {
  if (message.type === 'collect') collectGarbage('major')
  else help(message)
})
