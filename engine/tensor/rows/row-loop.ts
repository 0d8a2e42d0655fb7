/** Work that writes a result row by row, each by itself, so that several threads can share it. */

/** What every piece of such work says of itself, beside its own parameters. Plain data: it crosses threads. */
export interface RowWork {
  /** Of all pictures of a batch together. */
  readonly rows: number
  /** How many rows in a row are worth being given away: with fewer, too much would be computed by two threads. */
  readonly leastRows: number
  /** How many values are read and written, about. */
  readonly values: number
}

/**
 * The loop's body, opened once by each thread that takes part. Writing a row again writes the same; it must not depend on which
 * other rows have been written.
 */
export interface RowLoop extends Disposable {
  writeRow(row: number): void
}
