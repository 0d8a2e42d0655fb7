/**
 * Jobs that were given one more try after a failure that may have been the engine's (no memory, a faulty graphics card). Kept in
 * memory only: after a restart a job may get another one, within its attempts.
 */
export interface SecondChances {
  give(jobId: string): void
  wasGiven(jobId: string): boolean
  forget(jobId: string): void
}

// Jobs that ended elsewhere are never forgotten by name.
const MAX_REMEMBERED = 10_000

export function createSecondChances(): SecondChances {
  const given = new Set<string>()
  return {
    give(jobId) {
      const [oldest] = given
      if (given.size >= MAX_REMEMBERED && oldest !== undefined) given.delete(oldest)
      given.add(jobId)
    },
    wasGiven: (jobId) => given.has(jobId),
    forget: (jobId) => void given.delete(jobId),
  }
}
