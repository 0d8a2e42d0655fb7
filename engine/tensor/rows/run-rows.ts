/** Runs work on rows: with helpers where there are any and the work is large enough for them, else alone. */
import type { PixelWork } from '../tensor.ts'
import { openRows, type RowJob } from './row-jobs.ts'

export function runRows(job: RowJob, { checkpoint, shareRows }: PixelWork): void {
  if (shareRows?.(job, checkpoint) === true) return
  using loop = openRows(job)
  for (let row = 0; row < job.rows; row++) {
    checkpoint()
    loop.writeRow(row)
  }
}
