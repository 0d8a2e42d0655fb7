/**
 * Which client submitted a job. Known from the submit on, before any event of the run, and until the job has ended. What was
 * submitted before this process began, or was pushed out by very many others, is asked of the store once.
 */
import { BoundedMap } from '../../../lib/bounded-map.ts'

export interface Audiences {
  /** null: nobody in particular. */
  remember(jobId: string, clientId: string | null): void
  forget(jobId: string): void
  has(jobId: string): boolean
  /** The client, at once where it is known; null: nobody in particular. Never rejects. */
  find(accountId: string, jobId: string): string | null | Promise<string | null>
}

export interface AudiencesOptions {
  /** The client that the record of a job names; null also where there is no such job. */
  readonly lookUp: (accountId: string, jobId: string) => Promise<string | null>
  readonly maxJobs?: number
}

const MAX_JOBS = 50_000

/** No socket has the empty id, so whoever sends it has named nobody. */
export function toAudience(clientId: string | null): string | null {
  return clientId === '' ? null : clientId
}

export function createAudiences({ lookUp, maxJobs = MAX_JOBS }: AudiencesOptions): Audiences {
  const known = new BoundedMap<string, string | null>(maxJobs)
  const asked = new Map<string, Promise<string | null>>()

  function remember(jobId: string, clientId: string | null): void {
    known.set(jobId, clientId)
  }

  async function ask(accountId: string, jobId: string): Promise<string | null> {
    // A record that cannot be read must not keep a run from everybody.
    const clientId = await lookUp(accountId, jobId).catch(() => null)
    // Forgotten meanwhile: the job has ended.
    if (asked.delete(jobId)) remember(jobId, clientId)
    return clientId
  }

  return {
    remember,
    forget(jobId) {
      known.delete(jobId)
      asked.delete(jobId)
    },
    has: (jobId) => known.has(jobId),
    find(accountId, jobId) {
      const clientId = known.get(jobId)
      if (clientId !== undefined) return clientId
      const asking = asked.get(jobId) ?? ask(accountId, jobId)
      asked.set(jobId, asking)
      return asking
    },
  }
}
