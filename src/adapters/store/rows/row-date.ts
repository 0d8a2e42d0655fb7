/** A date as both stores keep it: in milliseconds, or not at all. */
export function toDate(millis: number | null): Date | null {
  return millis === null ? null : new Date(millis)
}
