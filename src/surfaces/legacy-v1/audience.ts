/**
 * Who is to hear of a job: the client that submitted it, where one was named. Known from the submit on, before any event of
 * the run, and remembered for a bounded number of jobs; a job that is not known is for every socket of its account.
 */
export interface Audience {
  readonly accountId: string
  /** null: everybody of the account. */
  readonly clientId: string | null
}

export interface Audiences {
  remember(jobId: string, audience: Audience): void
  forget(jobId: string): void
  of(jobId: string): Audience | null
}

const MAX_JOBS = 50_000

export function createAudiences(maxJobs = MAX_JOBS): Audiences {
  const known = new Map<string, Audience>()
  return {
    remember(jobId, audience) {
      known.set(jobId, audience)
      const [oldest] = known.keys()
      if (known.size > maxJobs && oldest !== undefined) known.delete(oldest)
    },
    forget(jobId) {
      known.delete(jobId)
    },
    of: (jobId) => known.get(jobId) ?? null,
  }
}
