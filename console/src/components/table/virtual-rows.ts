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
  readonly overscan?: number
}): RowWindow {
  const { scrollTop, height, rowHeight, rows, overscan = OVERSCAN } = options
  const last = Math.max(0, Math.min(rows, Math.ceil((scrollTop + height) / rowHeight) + overscan))
  const first = Math.min(last, Math.max(0, Math.floor(scrollTop / rowHeight) - overscan))
  return { first, last, offset: first * rowHeight }
}

export interface GridShape {
  readonly columns: number
  readonly rowHeight: number
}

/** Square tiles with a line below them: as many in a row as fit, three at least. */
export function toGrid(options: {
  readonly width: number
  readonly least: number
  readonly gap: number
  readonly lineHeight: number
}): GridShape {
  const { width, least, gap, lineHeight } = options
  const columns = Math.max(3, Math.floor((width + gap) / (least + gap)))
  const tile = (width - gap * (columns - 1)) / columns
  return { columns, rowHeight: Math.max(1, tile) + lineHeight + gap }
}
