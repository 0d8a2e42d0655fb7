/** Which rows of a long list are on the screen. Pure. */
export interface RowWindow {
  readonly first: number
  readonly last: number
  readonly offset: number
}

/** A few rows beyond the edges, so that a quick scroll shows rows and not their ground. */
const OVERSCAN = 8

export function toWindow(options: {
  readonly scrollTop: number
  readonly height: number
  readonly rowHeight: number
  readonly rows: number
}): RowWindow {
  const { scrollTop, height, rowHeight, rows } = options
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - OVERSCAN)
  const last = Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + OVERSCAN)
  return { first: Math.min(first, Math.max(0, last)), last, offset: Math.min(first, Math.max(0, last)) * rowHeight }
}
