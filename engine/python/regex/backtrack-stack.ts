/**
 * What a matcher can go back to, newest last: an alternative not tried yet, the old value of a register, a run of single
 * characters. One
 * flat array instead of the thread's stack, so that a long text cannot overflow it.
 */
import { NodeError } from '../../node/node-error.ts'

/** [where to go on, position] */
export const ALTERNATIVE = 0
/** [register, old value] */
export const UNDO = 1
/** [where to go on, lowest end, present end] */
export const GREEDY_RUN = 2
/** [instruction, end so far, how many more it may take] */
export const LAZY_RUN = 3

export const ENTRY_SIZE = 4
const INITIAL_SIZE = 1024
// 128 MiB; a pattern that keeps more alternatives than that will not come to an end.
const MAX_SIZE = 2 ** 25

export class BacktrackStack {
  entries = new Int32Array(INITIAL_SIZE)
  top = 0

  push(type: number, a: number, b: number, c: number): void {
    const { top } = this
    if (top + ENTRY_SIZE > this.entries.length) this.#grow()
    const { entries } = this
    entries[top] = type
    entries[top + 1] = a
    entries[top + 2] = b
    entries[top + 3] = c
    this.top = top + ENTRY_SIZE
  }

  #grow(): void {
    if (this.entries.length >= MAX_SIZE) {
      throw new NodeError('MemoryError', 'the regular expression needs too much memory on this text; use a simpler one')
    }
    const grown = new Int32Array(this.entries.length * 2)
    grown.set(this.entries)
    this.entries = grown
  }

  /** Forgets alternatives added since `base`, but keeps what restores the registers. */
  keepUndo(base: number): void {
    let kept = base
    for (let entry = base; entry < this.top; entry += ENTRY_SIZE) {
      if (this.entries[entry] !== UNDO) continue
      this.entries.copyWithin(kept, entry, entry + ENTRY_SIZE)
      kept += ENTRY_SIZE
    }
    this.top = kept
  }
}
