/** Python's slices: ends outside the sequence are moved to its ends, negative ones count from behind. */
export interface SliceRange {
  readonly start: number
  /** Never before `start`. */
  readonly end: number
}

function place(index: number, length: number): number {
  return Math.max(0, Math.min(index < 0 ? index + length : index, length))
}

/** `sequence[from:to]`; an absent `to` means up to the end. */
export function pySlice(length: number, from: number, to: number = length): SliceRange {
  const start = place(from, length)
  return { start, end: Math.max(start, place(to, length)) }
}
