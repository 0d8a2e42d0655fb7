/**
 * Which client submitted each job. The client of a prompt is remembered before its job exists, so that the first event of the
 * run finds it, and forgotten when the job ends. For a job that is not remembered (submitted before this process began, or
 * pushed out by newer ones, since the memory is bounded) the job's record is read when somebody asks.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
export interface JobClients {
  /** null: the submitter named no client. */
  remember(jobId: string, clientId: string | null): void
  forget(jobId: string): void
  has(jobId: string): boolean
  /** At once where the client is remembered; null: none was named. Never rejects. */
  find(accountId: string, jobId: string): string | null | Promise<string | null>
}

interface JobClientsOptions {
  /** The client that the record of a job names; null also where there is no such job. */
  readonly lookUp: (accountId: string, jobId: string) => Promise<string | null>
  readonly maxJobs?: number
}

const MAX_JOBS = 50_000

/** No socket has the empty id, so a submitter that sends it has named no client. */
export function toClientId(given: string | null): string | null {
  return given === '' ? null : given
}

export function createJobClients({ lookUp, maxJobs = MAX_JOBS }: JobClientsOptions): JobClients {
  const known = new BoundedMap<string, string | null>(maxJobs)
  const lookups = new Map<string, Promise<string | null>>()

  function remember(jobId: string, clientId: string | null): void {
    known.set(jobId, clientId)
  }

  async function readRecord(accountId: string, jobId: string): Promise<string | null> {
    // If its record cannot be read, every client gets the messages of the run.
    const clientId = await lookUp(accountId, jobId).catch(() => null)
    // The lookup is gone when the job was forgotten meanwhile, because it has ended.
    if (lookups.delete(jobId)) remember(jobId, clientId)
    return clientId
  }

  return {
    remember,
    forget(jobId) {
      known.delete(jobId)
      lookups.delete(jobId)
    },
    has: (jobId) => known.has(jobId),
    find(accountId, jobId) {
      const clientId = known.get(jobId)
      if (clientId !== undefined) return clientId
      const lookup = lookups.get(jobId) ?? readRecord(accountId, jobId)
      lookups.set(jobId, lookup)
      return lookup
    },
  }
}
