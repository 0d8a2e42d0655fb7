/** Sweeps in small slices, so that none holds up other writes. */

// About ten statements per removed job: a slice keeps the writer of SQLite for a few milliseconds.
const SLICE = 100

/** Repeats `sweep` with small limits until it finds less than it was allowed, or `limit` is reached; returns the sum. */
export async function inSlices(
  sweep: (sliceLimit: number) => Promise<number>,
  limit = Number.POSITIVE_INFINITY,
): Promise<number> {
  let done = 0
  while (done < limit) {
    const sliceLimit = Math.min(SLICE, limit - done)
    const found = await sweep(sliceLimit)
    done += found
    if (found < sliceLimit) break
  }
  return done
}

/** The same for a sweep that tells what it found. */
export async function gatherInSlices<Found>(
  sweep: (sliceLimit: number) => Promise<readonly Found[]>,
  limit = Number.POSITIVE_INFINITY,
): Promise<Found[]> {
  const all: Found[] = []
  await inSlices(async (sliceLimit) => {
    const found = await sweep(sliceLimit)
    all.push(...found)
    return found.length
  }, limit)
  return all
}
