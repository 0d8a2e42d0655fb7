/**
 * How much one visitor may do, so that he cannot use a link up within seconds: a few runs a minute, and few at a time. Visitors are told apart
 * by their address, in each process by itself; what the link allows in all is counted with the jobs.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { ServiceError } from '../../errors.ts'
import { isTerminal, type JobStatus } from '../../jobs/transitions.ts'

interface Visits {
  /** When he began runs, within the last minute. */
  readonly starts: readonly number[]
  /** Runs that were not known to have ended when they were last looked at. */
  readonly jobs: ReadonlySet<string>
  /** Calls that are being made ready. */
  readonly calls: number
}

interface VisitorDeps {
  readonly clock: Clock
  /** null: there is no such job any more. */
  readonly statusOf: (accountId: string, jobId: string) => Promise<JobStatus | null>
  readonly maxPerMinute?: number
  readonly maxAtATime?: number
}

interface Visitor {
  readonly accountId: string
  readonly shareId: string
  readonly address: string
}

export interface Visitors {
  /** `start` gives the id of the job that it made. Throws rate_limited. */
  run<Result extends { readonly job: { readonly id: string } }>(
    visitor: Visitor,
    start: () => Promise<Result>,
  ): Promise<Result>
}

const MINUTE_MS = 60_000
const MAX_VISITORS = 10_000
const MAX_PER_MINUTE = 10
const MAX_AT_A_TIME = 1
const RETRY_SECONDS = 2
const NONE: Visits = { starts: [], jobs: new Set(), calls: 0 }

export function createVisitors({
  clock,
  statusOf,
  maxPerMinute = MAX_PER_MINUTE,
  maxAtATime = MAX_AT_A_TIME,
}: VisitorDeps): Visitors {
  const known = new BoundedMap<string, Visits>(MAX_VISITORS)
  const change = (key: string, decide: (visits: Visits) => Visits) => known.set(key, decide(known.get(key) ?? NONE))

  async function forgetEnded(key: string, accountId: string): Promise<void> {
    for (const jobId of known.get(key)?.jobs ?? []) {
      const status = await statusOf(accountId, jobId)
      if (status !== null && !isTerminal(status)) continue
      change(key, (visits) => ({ ...visits, jobs: new Set([...visits.jobs].filter((id) => id !== jobId)) }))
    }
  }

  function admit(key: string): void {
    const now = clock.now().getTime()
    const { starts, jobs, calls } = known.get(key) ?? NONE
    const recent = starts.filter((at) => now - at < MINUTE_MS)
    if (jobs.size + calls >= maxAtATime) {
      throw new ServiceError('rate_limited', 'a run of yours is under way; wait for its end', {
        retryAfterSeconds: RETRY_SECONDS,
      })
    }
    if (recent.length >= maxPerMinute) {
      throw new ServiceError('rate_limited', `you may begin ${maxPerMinute} runs a minute; wait a little`, {
        retryAfterSeconds: Math.ceil((recent[0] + MINUTE_MS - now) / 1000),
      })
    }
    known.set(key, { starts: [...recent, now], jobs, calls: calls + 1 })
  }

  return {
    async run({ accountId, shareId, address }, start) {
      const key = `${shareId} ${toNetwork(address)}`
      await forgetEnded(key, accountId)
      admit(key)
      try {
        const made = await start()
        change(key, (visits) => ({ ...visits, jobs: new Set([...visits.jobs, made.job.id]) }))
        return made
      } finally {
        change(key, (visits) => ({ ...visits, calls: Math.max(0, visits.calls - 1) }))
      }
    },
  }
}

/** In IPv6 a household has as many addresses as it likes, all of one network. */
function toNetwork(address: string): string {
  if (!address.includes(':')) return address
  const [head, tail = ''] = address.split('::')
  const first = head.split(':').filter((part) => part !== '')
  const last = tail.split(':').filter((part) => part !== '')
  const zeros = address.includes('::') ? Math.max(0, 8 - first.length - last.length) : 0
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')
}
