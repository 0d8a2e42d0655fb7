/** How large the parts of an object are: they grow, since there may be no more than ten thousand of them. The last ends at 208 GiB. */
const MIB = 1024 * 1024

/** What is at most this large is sent at once, when it is known to be new. */
export const FIRST_PART_BYTES = 8 * MIB
export const MAX_PARTS = 10_000

export function partBytesOf(number: number): number {
  if (number <= 2_000) return FIRST_PART_BYTES
  return number <= 6_000 ? 2 * FIRST_PART_BYTES : 4 * FIRST_PART_BYTES
}
